import {
  EngineError,
  type LikeliestTokens,
  type ModelInfo,
  type ScoreOptions,
  type ScoreResult,
  type ScoreSequence,
  type ScoreShard,
  type ShardScores,
} from "@cria/core";
import { pickRows } from "@cria/core/internal";
import type { ImageStore } from "../images/image-store.js";
import { JobQueue } from "../job-queue.js";
import { callNative, callNativeSync } from "../native.js";
import type { NativeModel } from "../native-types.js";
import { checkLikeliest, checkTemperature, checkTokens } from "./check-batch.js";
import { chooseMicroBatchTokens, estimateCost } from "./micro-batch-size.js";
import { planMicroBatches } from "./plan-micro-batches.js";
import { withVectors } from "./shard-images.js";

/** Logprobs (entropies, sums of squared probabilities, likeliest tokens) of given tokens, from the training graph. */
export async function scoreSequences(
  native: NativeModel,
  info: ModelInfo,
  images: ImageStore | undefined,
  sequences: readonly ScoreSequence[],
  options: ScoreOptions,
): Promise<ScoreResult[]> {
  const { likeliest } = options;
  if (likeliest) checkLikeliest(likeliest, info);
  const inputs = sequences.map((sequence, i) => {
    const tokenIds = checkTokens(sequence.tokenIds, info, images, `score: sequence ${i}`);
    const from = Math.max(1, sequence.from ?? 1);
    const all = Int32Array.from({ length: Math.max(0, tokenIds.length - from) }, (_, k) => from + k);
    // Vectors of images are not predicted.
    return { tokenIds, scored: all.filter((t) => tokenIds[t]! < info.vocabSize) };
  });
  const results: ScoreResult[] = inputs.map(({ tokenIds }) => ({
    logprobs: new Float32Array(tokenIds.length),
    entropy: options.entropy ? new Float32Array(tokenIds.length) : null,
    sumPiSquared: options.sumPiSquared ? new Float32Array(tokenIds.length) : null,
    ...(likeliest ? { likeliest: makeLikeliest(tokenIds.length, likeliest.count) } : {}),
  }));
  const plans = planMicroBatches(inputs, {
    maxTokens: chooseMicroBatchTokens(info),
    cost: estimateCost(
      info,
      callNativeSync(() => native.attendsBlockwise()),
    ),
    temperature: checkTemperature(options.temperature),
    adapter: options.adapter ?? true,
    images,
  });
  const shards = plans.map((plan) => ({
    ...plan.microBatch,
    squares: options.sumPiSquared ?? false,
    ...(likeliest ? { likeliest } : {}),
  }));
  const found = await (options.compute
    ? computeElsewhere(native, images, shards, plans, options)
    : computeHere(native, images, shards, options.signal));
  for (const [k, plan] of plans.entries()) {
    const logprobs = pickRows(found[k]!.logprobs, plan.scores);
    const entropy = pickRows(found[k]!.entropy, plan.scores);
    const squares = found[k]!.squares && pickRows(found[k]!.squares, plan.scores);
    const top = found[k]!.likeliest;
    plan.sequenceIndices.forEach((index, i) => {
      const { scored } = inputs[index]!;
      const base = plan.offsets[i]!;
      for (let k = 0; k < scored.length; k++) {
        if (!Number.isFinite(logprobs[base + k]!)) throw makeNotFinite(index, scored[k]!, logprobs[base + k]!);
        results[index]!.logprobs[scored[k]!] = logprobs[base + k]!;
        if (options.entropy) results[index]!.entropy![scored[k]!] = entropy[base + k]!;
        if (squares) results[index]!.sumPiSquared![scored[k]!] = squares[base + k]!;
        if (top) copyList(top, plan.scores[base + k]!, results[index]!.likeliest!, scored[k]!);
      }
    });
  }
  return results;
}

function makeLikeliest(tokens: number, count: number): LikeliestTokens {
  return { count, ids: new Int32Array(tokens * count), logprobs: new Float32Array(tokens * count) };
}

/** Copies the tokens in place of one to those in place of another. */
function copyList(from: LikeliestTokens, source: number, to: LikeliestTokens, target: number): void {
  const { count } = from;
  to.ids.set(from.ids.subarray(source * count, (source + 1) * count), target * count);
  to.logprobs.set(from.logprobs.subarray(source * count, (source + 1) * count), target * count);
}

function makeNotFinite(sequence: number, token: number, logprob: number): EngineError {
  return new EngineError("gives logits that are not finite", {
    code: "engine/bad-logits",
    subject: "model",
    expected: `a finite logprob of token ${token} of sequence ${sequence}`,
    received: `${logprob}`,
    remedy: "a weight is NaN or infinity, or too large: go back to weights from before, or check the model file",
  });
}

/** The scores of one micro-batch. */
export async function computeScores(
  native: NativeModel,
  store: ImageStore | undefined,
  { squares, likeliest, images, ...microBatch }: ScoreShard,
  signal?: AbortSignal,
): Promise<ShardScores> {
  signal?.throwIfAborted();
  checkTemperature(microBatch.temperature);
  const request = { squares, top: likeliest?.count ?? 0, topBelow: likeliest?.below ?? 0 };
  const { logprobs, entropy, sumSquares, topTokens, topLogprobs } = await withVectors(
    store,
    images,
    signal,
    (vectors) => callNative(() => native.forward({ ...microBatch, vectors }, false, request)),
  );
  const top = likeliest ? { likeliest: { count: likeliest.count, ids: topTokens!, logprobs: topLogprobs! } } : {};
  return { logprobs, entropy, squares: sumSquares ?? null, ...top };
}

async function computeHere(
  native: NativeModel,
  images: ImageStore | undefined,
  shards: readonly ScoreShard[],
  signal: AbortSignal | undefined,
): Promise<ShardScores[]> {
  const found: ShardScores[] = [];
  for (const shard of shards) found.push(await computeScores(native, images, shard, signal));
  return found;
}

/** Starts all at once; those computed here take turns. */
async function computeElsewhere(
  native: NativeModel,
  images: ImageStore | undefined,
  shards: readonly ScoreShard[],
  plans: readonly { sequenceIndices: Int32Array }[],
  { compute, signal }: ScoreOptions,
): Promise<ShardScores[]> {
  const here = new JobQueue();
  const asked = shards.map((shard, k) =>
    compute!(shard, () => here.run(() => computeScores(native, images, shard, signal)), plans[k]!.sequenceIndices),
  );
  // Waits for all, so that none uses the addon during the next call.
  await Promise.allSettled(asked);
  return Promise.all(asked);
}
