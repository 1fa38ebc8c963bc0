import type { LoadModelOptions } from "@cria/engine";
import type { ImageAccess } from "@cria/rollout";
import type { EnvironmentOptions } from "../config/options/environment.js";
import { resolvePath } from "../config/paths.js";
import type { TrainConfig } from "../config/train-config.js";

type VisionKeys = Pick<TrainConfig["actor_rollout_ref"]["model"], "mmproj" | "image_min_tokens" | "image_max_tokens">;

/** Options of `loadModel` for the projector with which a model sees images; empty without one. */
export function describeVision(
  { mmproj, image_min_tokens, image_max_tokens }: VisionKeys,
  folder: string,
): Pick<LoadModelOptions, "mmproj" | "imageMinTokens" | "imageMaxTokens"> {
  if (mmproj === null) return {};
  return {
    mmproj: resolvePath(folder, mmproj),
    imageMinTokens: image_min_tokens ?? undefined,
    imageMaxTokens: image_max_tokens ?? undefined,
  };
}

/** Allowed sources and sizes of images in rows, tools and interactions. */
export function makeImageAccess({
  fetchImages,
  imageMaxBytes,
  imageMaxPixels,
}: EnvironmentOptions["images"]): ImageAccess {
  return {
    maxBytes: imageMaxBytes,
    maxPixels: imageMaxPixels,
    ...(fetchImages ? { fetch: (...given: Parameters<typeof fetch>) => fetch(...given) } : {}),
  };
}
