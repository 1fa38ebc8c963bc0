import type { ModelName, ModelType } from "../models/index.js";

export interface TrainCase {
  title: string;
  /** The embedded policy, or a model of a real shape with random weights. */
  model: "embedded" | { name: ModelName; type: ModelType };
  trainable: "full" | "lora";
  rows: number;
  length: number;
  /** The rows are samples of one prompt, half as long as they are. */
  sharedPrompt: boolean;
}

function realCases(name: ModelName, type: ModelType): TrainCase[] {
  const model = { name, type };
  const make = (rows: number, length: number, sharedPrompt: boolean): TrainCase => {
    const what = sharedPrompt ? `${rows} samples of one prompt` : `${rows}`;
    return {
      title: `${name} ${type}, LoRA r16, ${what} x ${length}`,
      model,
      trainable: "lora",
      rows,
      length,
      sharedPrompt,
    };
  };
  const unrelated = [make(2, 256, false), make(1, 1024, false)];
  // The savings of a shared prompt are shown once: the larger model takes minutes more to show the same.
  return name === "smollm2-135m" && type === "Q8_0" ? [...unrelated, make(4, 256, true)] : unrelated;
}

const embedded = (trainable: "full" | "lora", rows: number, length: number): TrainCase => ({
  title: `embedded policy, ${trainable === "full" ? "full" : "LoRA r16"}, ${rows} x ${length}`,
  model: "embedded",
  trainable,
  rows,
  length,
  sharedPrompt: false,
});

export const cases: TrainCase[] = [
  embedded("full", 32, 128),
  embedded("lora", 32, 128),
  ...realCases("smollm2-135m", "Q8_0"),
  ...realCases("smollm2-135m", "F16"),
  ...realCases("qwen2.5-0.5b", "Q8_0"),
  ...realCases("qwen2.5-0.5b", "F16"),
];
