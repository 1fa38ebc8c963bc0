import { readGguf } from "@cria/engine";
import { readAvailableMemory, readModelShape } from "@cria/trainer/internal";
import { formatBytes } from "../../terminal/format-bytes.js";
import { describeError, type Finding, fine, other } from "../finding.js";
import type { CheckContext, ModelCheck } from "../model-check.js";

export const GENERATES = "generates";
export const LORA = "trains an adapter";
export const FULL = "trains all weights";

/** Bytes for each parameter of full training: the weight, its gradient and two moments, F32. */
const FULL_BYTES = 16;
const SMALL = { contextSize: 256, maxSequences: 2 };

/** Loads the file for each kind of work, and computes once. */
export const loadCheck: ModelCheck = {
  name: "load",
  needsLora: false,
  seconds: 12,
  async run(context) {
    context.begin(GENERATES);
    const shape = readModelShape(await readGguf(context.path));
    const generates = await tryRow(GENERATES, async () => {
      const { seconds, model } = await measure(() => context.load({ ...SMALL, trainable: "none" }));
      const { architecture, layerCount, parameterCount, weightTypes } = model.info;
      const types = Object.entries(weightTypes).map(([type, count]) => `${count} ${type}`);
      const sequence = model.createSequence();
      await sequence.generate(model.tokenize("Hello"), { maxTokens: 2, stopTokens: [], temperature: 0 });
      await model.dispose();
      const size = `${(parameterCount / 1e6).toFixed(1)}M parameters`;
      return `${architecture}, ${layerCount} layers, ${size}, ${types.join(", ")}; loads in ${seconds.toFixed(1)} s`;
    });
    context.advance(0.3);
    if (generates.verdict !== "ok") return [generates];
    context.begin(LORA);
    const lora = await tryRow(LORA, () => trainOnce(context, "lora"));
    context.advance(0.6);
    context.begin(FULL);
    return [generates, lora, await tryFull(context, shape)];
  },
};

async function tryFull(context: CheckContext, shape: { parameters: number; fileBytes: number }): Promise<Finding> {
  if (shape.fileBytes < 4 * shape.parameters * 0.99)
    return other(
      "not supported",
      FULL,
      "the weights are quantized, or of 16 bits",
      "train an adapter; for all weights: cria export --model <file> --merged f32.gguf --quantize F32",
    );
  const needed = FULL_BYTES * shape.parameters;
  if (context.device === "cpu" && needed > readAvailableMemory())
    return other(
      "not checked",
      FULL,
      `needs ${formatBytes(needed)} of memory`,
      "train an adapter, or use a machine with more",
    );
  return tryRow(FULL, () => trainOnce(context, "full"));
}

/** Loads the model, and computes a gradient of a few tokens. */
async function trainOnce(context: CheckContext, trainable: "lora" | "full"): Promise<string> {
  const lora = trainable === "lora" ? { rank: 8, alpha: 16 } : null;
  const { seconds, model } = await measure(() => context.load({ ...SMALL, trainable, lora }));
  try {
    const tokenIds = model.tokenize("The quick brown fox jumps.");
    const lossMask = Array.from(tokenIds, (_, t) => (t > 0 ? 1 : 0));
    await model.train([{ tokenIds, lossMask }], sumLogprobs, null);
    const trained = model.info.trainableParameterCount;
    return `${(trained / 1e6).toFixed(1)}M trained parameters; loads in ${seconds.toFixed(1)} s`;
  } finally {
    await model.dispose();
  }
}

const sumLogprobs = ({ logprobs }: { logprobs: Float32Array }) => ({
  loss: logprobs.reduce((sum, value) => sum + value, 0),
  dLogprobs: logprobs.map(() => 1),
});

async function tryRow(name: string, work: () => Promise<string>): Promise<Finding> {
  try {
    return fine(name, await work());
  } catch (error) {
    return describeError(name, error);
  }
}

async function measure<T>(load: () => Promise<T>): Promise<{ seconds: number; model: T }> {
  const started = performance.now();
  const model = await load();
  return { seconds: (performance.now() - started) / 1000, model };
}
