import { EngineError } from "@cria/core";
import { resolveProjector } from "@cria/hub";
import type { LoadModelOptions } from "../load-native.js";
import type { NativeModel } from "../native-types.js";
import { ImageStore } from "./image-store.js";
import { openProjector } from "./open-projector.js";

const defaultMemory = 512 * 2 ** 20;

/**
 * The images of a model, where its options name a projector.
 * @throws EngineError as `openProjector` does; HubError when the projector's address cannot be followed.
 */
export async function openImages(
  native: NativeModel,
  { mmproj, imageMinTokens, imageMaxTokens, imageMemory = defaultMemory }: LoadModelOptions,
): Promise<ImageStore | undefined> {
  if (mmproj === undefined) return undefined;
  const model = native.info();
  const projector = await openProjector(native, model, {
    path: await resolveProjector(mmproj),
    minTokens: imageMinTokens,
    maxTokens: imageMaxTokens,
  });
  if (projector.native.info().usesMrope) {
    await projector.native.dispose();
    throw new EngineError("needs positions of several dimensions (M-RoPE), which the engine does not evaluate", {
      code: "engine/unsupported-projector",
      subject: projector.info.path,
      expected: "a projector above llama, qwen2 or qwen3",
      received: `type "${projector.info.type}" above ${model.architecture}`,
      remedy: "take another model, or leave the projector out to use the text alone",
    });
  }
  return new ImageStore(native, projector.native, projector.info, {
    vocabSize: model.vocabSize,
    memoryLimit: imageMemory,
  });
}
