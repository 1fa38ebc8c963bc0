import type { GgufTensor, GgufValue } from "../native-types.js";
import { makeNormals } from "./make-tiny-model.js";

/** Sizes of a random projector. */
export interface ProjectorShape {
  /** Floats of a vector: the embedding size of the model it is for. Default 32, as `makeTinyModel` has it. */
  projection: number;
  /** Side of the image that the tower sees, and of a patch, in pixels. Default 32 and 8: 16 vectors of LLaVA's. */
  imageSize: number;
  patchSize: number;
  /** Of the tower. */
  embedding: number;
  layers: number;
  heads: number;
  feedForward: number;
  seed: number;
  /** Of the vectors, against 1 for those of an embedding table. Default 1. */
  scale: number;
  /** Of mlp: the class token and the norm before the layers that LLaVA's CLIP towers have, and SigLIP towers do not. */
  classToken: boolean;
  /** Of mlp: the sizes in pixels that LLaVA 1.6 cuts into tiles, width and height after one another. */
  tileSizes: readonly number[];
  /** Of resampler: llama.cpp's number of the release. Default 3: MiniCPM-V 2.6. */
  minicpmVersion: number;
  /** Of pixtral: 2 x 2 patches are one vector, as in Mistral Small 3.1. */
  patchMerger: boolean;
}

/** Metadata and tensors, as they come. */
export class ProjectorBuilder {
  readonly metadata: Record<string, GgufValue> = {};
  readonly tensors: GgufTensor[] = [];
  private readonly normal: () => number;

  constructor(seed: number) {
    this.normal = makeNormals(seed);
  }

  /** A whole number of the tower. */
  count(key: string, value: number): void {
    this.metadata[`clip.vision.${key}`] = { type: "uint32", value };
  }

  /** A tensor of normals around `mean`; fastest axis first. */
  add(name: string, shape: number[], scale: number, mean = 0): void {
    const data = Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => mean + scale * this.normal());
    this.tensors.push({ name, type: "f32", shape, data });
  }

  /** A weight that keeps a vector's scale, times `scale`. */
  weight(name: string, inputs: number, outputs: number, scale = 1): void {
    this.add(`${name}.weight`, [inputs, outputs], scale / Math.sqrt(inputs));
  }

  /** A weight and a bias. */
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
