import { createHash } from "node:crypto";
import type { PolicyEngine, ShardGradient } from "@cria/core";

const PROMPT_TOKENS = 24;
const SAMPLED_TOKENS = 64;

/**
 * The class of an engine's bits: a hash of 64 sampled tokens, their logprobs, and one gradient, over the model's SHA-256. Engines
 * of one class compute the same bits, whatever their machines are called; kernels, types and releases that compute others
 * give another class. It must be called while the weights are those that training starts from.
 * @param model SHA-256 of the model's file.
 */
export async function computeClass(engine: PolicyEngine, model: string, signal?: AbortSignal): Promise<string> {
  const hash = createHash("sha256").update(model);
  const turns: SampledTurn[] = [];
  let left = SAMPLED_TOKENS;
  // A turn may end early, and a context may be small: as many as it takes.
  while (left > 0 && turns.length < SAMPLED_TOKENS) {
    const turn = await sampleTurn(engine, turns.length, left, signal);
    turns.push(turn);
    left -= turn.logprobs.length;
    hash.update(bytesOf(turn.tokens)).update(bytesOf(turn.logprobs));
  }
  return hash
    .update(bytesOf(await computeGradient(engine, turns)))
    .digest("hex")
    .slice(0, 16);
}

interface SampledTurn {
  /** With the prompt. */
  tokens: Int32Array;
  /** Of those that were sampled. */
  logprobs: Float32Array;
}

async function sampleTurn(
  engine: PolicyEngine,
  turn: number,
  most: number,
  signal?: AbortSignal,
): Promise<SampledTurn> {
  const { contextSize, vocabSize } = engine.info;
  const prompt = Int32Array.from(
    { length: Math.max(1, Math.min(PROMPT_TOKENS, contextSize >> 1)) },
    (_, i) => ((i + 31 * turn) * 7919 + 13) % vocabSize,
  );
  const sequence = engine.createSequence();
  try {
    const maxTokens = Math.min(most, contextSize - prompt.length);
    const { tokenIds, logprobs } = await sequence.generate(prompt, { maxTokens, temperature: 1, seed: turn, signal });
    return { tokens: Int32Array.of(...prompt, ...tokenIds), logprobs };
  } finally {
    sequence.dispose();
  }
}

/** Of the logprobs of the sampled tokens. */
async function computeGradient(engine: PolicyEngine, turns: readonly SampledTurn[]): Promise<Float32Array> {
  let found: ShardGradient | undefined;
  await engine.train(
    turns.map(({ tokens, logprobs }) => ({
      tokenIds: tokens,
      lossMask: Array.from(tokens, (_, i) => (i < tokens.length - logprobs.length ? 0 : 1)),
    })),
    ({ logprobs }) => ({ loss: 0, dLogprobs: logprobs.map(() => -1 / SAMPLED_TOKENS) }),
    null,
    {
      // All in one, however large the engine would make them.
      microBatchTokens: engine.info.contextSize * turns.length,
      compute: async (_, here) => {
        found ??= await here();
        // What is handed back is accumulated: nothing is to be.
        return { ...found, gradient: new Float32Array(found.gradient.length) };
      },
    },
  );
  return found!.gradient;
}

const bytesOf = ({ buffer, byteOffset, byteLength }: Float32Array | Int32Array) =>
  new Uint8Array(buffer, byteOffset, byteLength);
