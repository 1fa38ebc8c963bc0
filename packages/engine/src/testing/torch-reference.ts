import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import type { TrainSequence } from "@cria/core";
import { textArchitectures } from "./make-tiny-model.js";

export interface ReferenceTraining {
  losses: number[];
  gradNorms: number[];
  /** Gradients of the first step, by tensor. */
  gradients: Record<string, number[]>;
  /** After three steps. */
  values: Record<string, number[]>;
}

/** Results of float64 PyTorch for a tiny model (fixtures/torch/README.md). */
export interface TorchReference {
  /** The model's file. */
  path: string;
  settings: { temperature: number };
  batch: {
    tokenIds: number[];
    lossMask: number[];
    advantages: number[];
    oldLogprobs: number[];
    refLogprobs: number[];
    /** By temperature, "1.0" and "0.7". */
    logprobs: Record<string, number[]>;
    entropy: Record<string, number[]>;
  }[];
  /** Logits of the third sequence. */
  logits: number[];
  full: ReferenceTraining;
  lora: ReferenceTraining & { initial: Record<string, number[]> };
}

/** llama3: llama with factors of RoPE. phi3long: phi3 beyond its original context. */
export const torchFamilies = [...textArchitectures, "llama3", "phi3long"];

/** @param folder that of the fixtures: this package is also read from its build. */
export function readTorchReference(folder: string, family: string): TorchReference {
  const text = gunzipSync(readFileSync(join(folder, `${family}.json.gz`))).toString();
  return { ...(JSON.parse(text) as TorchReference), path: join(folder, `${family}.gguf`) };
}

/** The layers of its adapter, as `loadModel` takes them. */
export function listReferenceTargets({ lora }: TorchReference): string[] {
  const names = Object.keys(lora.initial).map((name) => /^blk\.\d+\.(.+)\.weight\.lora_[ab]$/.exec(name)![1]!);
  return [...new Set(names)];
}

export function makeReferenceBatch({ batch }: TorchReference): TrainSequence[] {
  return batch.map(({ tokenIds, lossMask, advantages, oldLogprobs, refLogprobs }) => ({
    tokenIds,
    lossMask,
    columns: { advantages, oldLogprobs, refLogprobs },
  }));
}
