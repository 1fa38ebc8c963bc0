import { writeGguf } from "../gguf-files/write-gguf.js";
import type { GgufFile, GgufValue } from "../native-types.js";
import { ProjectorBuilder, type ProjectorShape } from "./projector-builder.js";
import { type ProjectorFamily, projectorFamilies } from "./projector-families.js";

/** A random projector (mmproj) of a few thousand weights, for tests, with llama.cpp's real structure of its family. */
export interface TinyProjectorOptions extends Partial<ProjectorShape> {
  /** llama.cpp's name of the family. Default "mlp". */
  type?: ProjectorFamily;
}

export function describeTinyProjector(options: TinyProjectorOptions = {}): GgufFile {
  const type = options.type ?? "mlp";
  const { defaults, describe } = projectorFamilies[type];
  const shape: ProjectorShape = {
    projection: 32,
    imageSize: 32,
    patchSize: 8,
    embedding: 32,
    layers: 2,
    heads: 4,
    feedForward: 48,
    seed: 1,
    scale: 1,
    classToken: false,
    tileSizes: [],
    minicpmVersion: 3,
    deepLayers: 2,
    patchMerger: false,
    ...defaults,
    ...options,
  };
  const build = new ProjectorBuilder(shape.seed);
  const half: GgufValue = { type: "array", of: "float32", value: [0.5, 0.5, 0.5] };
  Object.assign(build.metadata, {
    "general.architecture": { type: "string", value: "clip" },
    "general.name": { type: "string", value: `tiny-${type}` },
    "general.file_type": { type: "uint32", value: 0 },
    "clip.has_vision_encoder": { type: "bool", value: true },
    "clip.projector_type": { type: "string", value: type },
    "clip.vision.image_mean": half,
    "clip.vision.image_std": half,
    "clip.vision.attention.layer_norm_epsilon": { type: "float32", value: 1e-6 },
  } satisfies Record<string, GgufValue>);
  describe(build, shape);
  return { metadata: build.metadata, tensors: build.tensors };
}

/** Writes such a projector to `path`. */
export async function makeTinyProjector(path: string, options: TinyProjectorOptions = {}): Promise<GgufFile> {
  const file = describeTinyProjector(options);
  await writeGguf(path, file);
  return file;
}
