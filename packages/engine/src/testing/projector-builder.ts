import type { GgufTensor, GgufValue } from "../native-types.js";
import { makeNormals } from "./make-tiny-model.js";

/** Sizes of a random projector. */
export interface ProjectorShape {
  /** Floats of a vector: the embedding size of its model. Default 32, as in `makeTinyModel`. */
  projection: number;
  /** Side of the image that the tower sees, and of a patch, in pixels. Default 32 and 8: 16 vectors in LLaVA. */
  imageSize: number;
  patchSize: number;
  /** Sizes of the tower. */
  embedding: number;
  layers: number;
  heads: number;
  feedForward: number;
  seed: number;
  /** Scale of the vectors, relative to 1 for those of an embedding table. Default 1. */
  scale: number;
  /**
   * For mlp: adds the class token and the norm before the layers that LLaVA's CLIP towers have, and SigLIP towers do
   * not.
   */
  classToken: boolean;
  /** For mlp: the sizes in pixels that LLaVA 1.6 cuts into tiles, as width, height, width, height, ... */
  tileSizes: readonly number[];
  /** For resampler: llama.cpp's number of the release. Default 3: MiniCPM-V 2.6. */
  minicpmVersion: number;
  /** For qwen3vl_merger: layers whose vectors are added behind the model's first ones. Default 2: Qwen3-VL. */
  deepLayers: number;
  /** For pixtral: 2 x 2 patches become one vector, as in Mistral Small 3.1. */
  patchMerger: boolean;
}

/** Collects metadata and tensors. */
export class ProjectorBuilder {
  readonly metadata: Record<string, GgufValue> = {};
  readonly tensors: GgufTensor[] = [];
  private readonly normal: () => number;

  constructor(seed: number) {
    this.normal = makeNormals(seed);
  }

  /** Adds a whole number of the tower. */
  count(key: string, value: number): void {
    this.metadata[`clip.vision.${key}`] = { type: "uint32", value };
  }

  /** Adds a tensor of normals around `mean`; fastest axis first. */
  add(name: string, shape: number[], scale: number, mean = 0): void {
    const data = Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => mean + scale * this.normal());
    this.tensors.push({ name, type: "f32", shape, data });
  }

  /** Adds a weight that keeps a vector's scale, times `scale`. */
  weight(name: string, inputs: number, outputs: number, scale = 1): void {
    this.add(`${name}.weight`, [inputs, outputs], scale / Math.sqrt(inputs));
  }

  /** Adds a weight and a bias. */
  linear(name: string, inputs: number, outputs: number, scale = 1): void {
    this.weight(name, inputs, outputs, scale);
    this.add(`${name}.bias`, [outputs], 0.1 * scale);
  }

  norm(name: string, size: number): void {
    this.rmsNorm(name, size);
    this.add(`${name}.bias`, [size], 0.1);
  }

  rmsNorm(name: string, size: number): void {
    this.add(`${name}.weight`, [size], 0.1, 1);
  }
}
