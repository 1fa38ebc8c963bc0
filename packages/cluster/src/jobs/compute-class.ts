import { createHash } from "node:crypto";
import { encodePng, loadImage, type PlacedImage, type PolicyEngine, type ShardGradient } from "@cria/core";

const PROMPT_TOKENS = 24;
const SAMPLED_TOKENS = 64;
/** Side of the test picture, in pixels. */
const PICTURE_SIDE = 32;

/**
 * The class of an engine's bits: a hash of 64 sampled tokens, their logprobs, and one gradient, over the SHA-256 of the
 * model and of its projector; with a projector all of them depend on a picture. Engines of one class compute the same
 * bits on any machine; kernels, types and releases that compute others give another class. Call it while the weights
 * are those that training starts from.
 * @param model SHA-256 of the model's file.
 */
export async function computeClass(engine: PolicyEngine, model: string, signal?: AbortSignal): Promise<string> {
  const hash = createHash("sha256").update(model);
  if (engine.images) hash.update(engine.images.info.hash);
  const picture = await placePicture(engine);
  const turns: SampledTurn[] = [];
  let left = SAMPLED_TOKENS;
  // A turn may end early, and a context may be small: samples as many turns as needed.
  while (left > 0 && turns.length < SAMPLED_TOKENS) {
    const turn = await sampleTurn(engine, picture, turns.length, left, signal);
    turns.push(turn);
    left -= turn.logprobs.length;
    // An image's ids depend on the images that the engine was shown before.
    hash.update(bytesOf(turn.tokens.subarray(picture?.tokenIds.length ?? 0))).update(bytesOf(turn.logprobs));
  }
  return hash
    .update(bytesOf(await computeGradient(engine, turns)))
    .digest("hex")
    .slice(0, 16);
}

interface SampledTurn {
  /** Tokens with the prompt. */
  tokens: Int32Array;
  /** Logprobs of the sampled tokens. */
  logprobs: Float32Array;
}

async function sampleTurn(
  engine: PolicyEngine,
  picture: PlacedImage | undefined,
  turn: number,
  most: number,
  signal?: AbortSignal,
): Promise<SampledTurn> {
  const { contextSize, vocabSize } = engine.info;
  const shown = picture?.tokenIds ?? [];
  const text = Int32Array.from(
    { length: Math.max(1, Math.min(PROMPT_TOKENS, (contextSize - shown.length) >> 1)) },
    (_, i) => ((i + 31 * turn) * 7919 + 13) % vocabSize,
  );
  const prompt = Int32Array.of(...shown, ...text);
  const sequence = engine.createSequence();
  try {
    const maxTokens = Math.min(most, contextSize - prompt.length);
    const { tokenIds, logprobs } = await sequence.generate(prompt, { maxTokens, temperature: 1, seed: turn, signal });
    return { tokens: Int32Array.of(...prompt, ...tokenIds), logprobs };
  } finally {
    sequence.dispose();
  }
}

/** A small picture in front of each turn; undefined where the model sees none, or its context has no room for one. */
async function placePicture({ images, info }: PolicyEngine): Promise<PlacedImage | undefined> {
  const rgb = Uint8Array.from({ length: 3 * PICTURE_SIDE ** 2 }, (_, i) => (i * i + 7 * i) % 251);
  const bytes = encodePng({ width: PICTURE_SIDE, height: PICTURE_SIDE, rgb });
  const placed = images?.place(await loadImage({ bytes }));
  return placed && placed.tokenIds.length + 2 <= info.contextSize ? placed : undefined;
}

/** Gradient of the sampled tokens' logprobs. */
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
      // All turns in one micro-batch, regardless of the engine's default.
      microBatchTokens: engine.info.contextSize * turns.length,
      compute: async (_, here) => {
        found ??= await here();
        // The engine accumulates the returned gradient, which must stay zero.
        return { ...found, gradient: new Float32Array(found.gradient.length) };
      },
    },
  );
  return found!.gradient;
}

const bytesOf = ({ buffer, byteOffset, byteLength }: Float32Array | Int32Array) =>
  new Uint8Array(buffer, byteOffset, byteLength);
