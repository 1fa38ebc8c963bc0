import { resolveProjector } from "@cria/hub/internal";
import { readGguf } from "../gguf-files/read-gguf.js";
import type { LoadModelOptions } from "../load-native.js";
import type { NativeModel } from "../native-types.js";
import { defaultEncodeMemory, readTowerShape } from "./encoding-memory.js";
import { ImageStore } from "./image-store.js";
import { openProjector } from "./open-projector.js";

/** Default for the bytes of images' vectors and files that stay in memory without users. */
export const defaultImageMemory = 512 * 2 ** 20;

/**
 * The images of a model whose options name a projector.
 * @param contextSize context of the prompts with images; a critic has none.
 * @throws EngineError as `openProjector` does; HubError when the projector's address cannot be resolved.
 */
export async function openImages(
  native: NativeModel,
  {
    mmproj,
    imageMinTokens,
    imageMaxTokens,
    imageMemory = defaultImageMemory,
    imageEncodeMemory = defaultEncodeMemory,
  }: LoadModelOptions,
  contextSize?: number,
): Promise<ImageStore | undefined> {
  if (mmproj === undefined) return undefined;
  const model = native.info();
  const projector = await openProjector(native, model, {
    path: await resolveProjector(mmproj),
    minTokens: imageMinTokens,
    maxTokens: imageMaxTokens,
  });
  return new ImageStore(native, projector.native, projector.info, {
    vocabSize: model.vocabSize,
    contextSize,
    memoryLimit: imageMemory,
    encoding: { tower: readTowerShape(await readGguf(projector.info.path)), limit: imageEncodeMemory },
  });
}
