import { type Algorithms, composePolicyLoss, type PolicyLossOptions, preparePolicyLoss } from "@cria/algorithms";
import { defaultAlgorithms, needsPreparation } from "@cria/algorithms/internal";
import {
  EngineError,
  type GradientShard,
  hashSeed,
  type LossFunction,
  type LossInputs,
  makeUniform,
  type OptimizerOptions,
  type PolicyEngine,
  type ShardGradient,
  type TrainResult,
  type TrainSequence,
} from "@cria/core";
import { updateOptions } from "../config/options/updates.js";
import type { Batch } from "./batch.js";
import { countOnes } from "./flat-tokens.js";
import { cutMiniBatches } from "./mini-batches.js";
import type { Teacher } from "./teacher.js";
import type { ScoreReference, ScoreTokens } from "./token-scores.js";

/** How a policy is updated. The defaults are those of the config. */
export interface UpdateOptions extends Omit<OptimizerOptions, "epsilon"> {
  /** Prompts of one optimizer step; default: all of the batch. */
  miniBatchSize?: number;
  /** Passes over the batch; default 1. */
  epochs?: number;
  /** Whether each pass distributes the prompts over the mini-batches in a new order; default true. */
  shuffle?: boolean;
  /** Together with step and pass it decides that order; default: the policy's seed. */
  seed?: number;
  /** Of the training, from 1; default: one more than updates were made. */
  step?: number;
  /** Tokens of a micro-batch, padding included; default: chosen by model and memory. The result is the same. */
  microBatchTokens?: number;
  /** Whether the batch's `oldLogprobs` are those of the weights that the update starts from; default true. */
  isOnPolicy?: boolean;
  /** Where names in the loss are looked up; default: built-in and registered algorithms. */
  algorithms?: Algorithms;
  /** Whose logprobs a batch needs that has none, where the loss has a teacher: `loadTeacher`. */
  teacher?: Pick<Teacher, "score">;
  /**
   * Called with the logprobs of the first optimizer step's own forward pass, by index of trajectory in the batch: those of its
   * sequences, in their order.
   */
  onScores?: (scores: ReadonlyMap<number, readonly SequenceScores[]>) => void;
  /** Called before each optimizer step, while the engine is free. */
  beforeStep?: () => Promise<void>;
  /**
   * Computes a micro-batch somewhere, by `computePolicyGradient`; `here` does so in this process. The bits are the same wherever
   * that is, if the weights are. Default: `here`.
   */
  compute?: (work: GradientWork, here: () => Promise<ShardGradient>) => Promise<ShardGradient>;
}

/** Of the tokens of a sequence that are in the loss; 0 at the others. */
export interface SequenceScores {
  logprobs: Float32Array;
  /** In nats. */
  entropy: Float32Array;
}

/** A micro-batch of an update with all that its gradient depends on beside the weights: a value. */
export interface GradientWork {
  shard: GradientShard;
  loss: PolicyLossOptions;
  /** Of the mini-batch, trajectories without a gradient included. */
  totals: LossInputs["totals"];
}

/** The gradient of a micro-batch by the weights of this engine. */
export function computePolicyGradient(
  engine: PolicyEngine,
  { shard, loss, totals }: GradientWork,
  { algorithms = defaultAlgorithms, signal }: { algorithms?: Algorithms; signal?: AbortSignal } = {},
): Promise<ShardGradient> {
  if (!engine.computeGradient) {
    throw new EngineError("computes no gradients for others", {
      code: "engine/not-supported",
      subject: engine.info.path,
      expected: "an engine with computeGradient, such as loadModel gives",
      received: "one without",
    });
  }
  const compute = composeUpdateLoss(loss, algorithms);
  return engine.computeGradient(shard, (inputs) => compute({ ...inputs, totals }), { signal });
}

/** The loss of an update. Sequences without `oldLogprobs` have those of the update's own pass: it is the only one. */
function composeUpdateLoss(loss: PolicyLossOptions, algorithms: Algorithms): LossFunction {
  const compute = composePolicyLoss(loss, algorithms);
  return (inputs) =>
    compute(
      inputs.columns.oldLogprobs ? inputs : { ...inputs, columns: { ...inputs.columns, oldLogprobs: inputs.logprobs } },
    );
}

/** Defaults of an update. */
const usual = updateOptions.parse({});

/** What is updated. */
interface Trainable {
  engine: Pick<PolicyEngine, "score" | "train">;
  score: ScoreTokens;
  scoreReference: ScoreReference;
}

/** Updates in mini-batches of prompts; one optimizer step each. */
export async function updatePolicy(
  policy: Trainable,
  batch: Batch,
  loss: PolicyLossOptions,
  options: UpdateOptions & { seed: number; step: number },
): Promise<TrainResult[]> {
  const { algorithms = defaultAlgorithms, isOnPolicy = true, microBatchTokens, seed: base, step } = options;
  const { lossMasks, temperature } = batch;
  const lossOptions = { ...loss, lossScaleFactor: loss.lossScaleFactor ?? batch.responseLength };
  const compute = composeUpdateLoss(lossOptions, algorithms);
  const cut = {
    miniBatchSize: options.miniBatchSize ?? batch.groups.length,
    shuffle: options.shuffle ?? usual.shuffle,
  };
  const epochs = options.epochs ?? usual.epochs;
  const isOneUpdate = epochs === 1 && new Set(batch.groups).size <= cut.miniBatchSize;
  const needsOld = !isOneUpdate || needsPreparation(lossOptions, algorithms);
  const scored = batch.isScored
    ? batch.sequences
    : await scoreBatch(policy, batch, lossOptions, algorithms, { needsOld, teacher: options.teacher });
  const results: TrainResult[] = [];
  for (let round = 0; round < epochs; round++) {
    const seed = hashSeed(base, step, round);
    for (const [k, indices] of cutMiniBatches(batch.groups, cut, seed).entries()) {
      let sequences = indices.flatMap((i) => scored.get(i) ?? []);
      if (sequences.length === 0) continue;
      if (needsPreparation(lossOptions, algorithms)) {
        const isFresh = isOnPolicy && results.length === 0;
        const logprobs = isFresh
          ? sequences.map(({ columns }) => columns!.oldLogprobs!)
          : await scoreNow(policy, sequences, temperature);
        sequences = preparePolicyLoss(lossOptions, sequences, logprobs, makeUniform(hashSeed(seed, k)), algorithms);
      }
      // Trajectories left out still count in the denominators: their tokens have loss 0, not no loss.
      const tokens = indices.map((i) => countOnes(lossMasks[i]!));
      const totals = {
        tokens: tokens.reduce((sum, count) => sum + count, 0),
        sequences: tokens.filter((count) => count > 0).length,
      };
      const { learningRate, betas, weightDecay, maxGradNorm, compute: elsewhere, onScores } = options;
      // Other machines do not send theirs.
      const seen = onScores && !elsewhere && results.length === 0 ? new SeenScores(sequences) : null;
      await options.beforeStep?.();
      results.push(
        await policy.engine.train(
          sequences,
          (inputs) => {
            seen?.take(inputs);
            return compute({ ...inputs, totals });
          },
          {
            learningRate,
            betas: betas ?? usual.betas,
            weightDecay: weightDecay ?? usual.weightDecay,
            maxGradNorm: maxGradNorm ?? usual.maxGradNorm,
          },
          // No signal: an update that has begun is always finished.
          {
            temperature,
            microBatchTokens,
            ...(elsewhere ? { compute: (shard, here) => elsewhere({ shard, loss: lossOptions, totals }, here) } : {}),
          },
        ),
      );
      if (seen) onScores!(seen.byTrajectory(indices, scored));
    }
  }
  return results;
}

/** What the loss of an optimizer step is given of its sequences, micro-batch by micro-batch. */
class SeenScores {
  private readonly scores: SequenceScores[];

  constructor(private readonly sequences: readonly TrainSequence[]) {
    this.scores = sequences.map(({ tokenIds: { length } }) => ({
      logprobs: new Float32Array(length),
      entropy: new Float32Array(length),
    }));
  }

  take({ sequenceIndices, offsets, logprobs, entropy }: LossInputs): void {
    sequenceIndices.forEach((index, i) => {
      const { lossMask } = this.sequences[index]!;
      const own = this.scores[index]!;
      let at = offsets[i]!;
      for (let t = 1; t < lossMask.length; t++) {
        if (!lossMask[t]) continue;
        own.logprobs[t] = logprobs[at]!;
        own.entropy[t] = entropy[at++]!;
      }
    });
  }

  /** @param indices of the mini-batch, in the order that its sequences have. */
  byTrajectory(
    indices: readonly number[],
    batch: ReadonlyMap<number, readonly TrainSequence[]>,
  ): Map<number, SequenceScores[]> {
    let next = 0;
    const found = indices.map((i) => {
      const { length } = batch.get(i) ?? [];
      next += length;
      return [i, this.scores.slice(next - length, next)] as const;
    });
    return new Map(found.filter(([, sequences]) => sequences.length > 0));
  }
}

/**
 * The sequences of a batch with `oldLogprobs` where they are needed before the update, `refLogprobs` where the loss has a KL
 * term, and `teacherLogprobs` where it has a teacher. A trajectory without advantage is left out unless it has a gradient all the same.
 */
async function scoreBatch(
  policy: Trainable,
  { sequences, temperature }: Batch,
  loss: PolicyLossOptions,
  { policyLosses }: Algorithms,
  { needsOld, teacher }: { needsOld: boolean; teacher: UpdateOptions["teacher"] },
): Promise<Map<number, readonly TrainSequence[]>> {
  const needsAll =
    loss.kl !== null ||
    loss.teacher !== null ||
    loss.entropyCoeff !== 0 ||
    !policyLosses.resolve(loss.lossMode).vanishesWithoutAdvantage;
  const isWanted = ({ columns }: TrainSequence) => needsAll || hasAdvantage(columns!.advantages!);
  const wanted = [...sequences].filter(([, paths]) => paths.some(isWanted));
  const paths = wanted.flatMap(([, paths]) => paths);
  const old = needsOld ? await policy.score(paths, { temperature }) : null;
  const askReference = (score: ScoreReference) => scoreWith(score, paths, temperature);
  const isAsked = paths.length > 0;
  const reference =
    loss.kl !== null && isAsked ? await askReference((...given) => policy.scoreReference(...given)) : null;
  // Without a teacher the loss says that its column is missing.
  const taught = loss.teacher !== null && teacher && isAsked ? await askReference(teacher.score) : null;
  let next = 0;
  return new Map(
    wanted.map(([index, paths]) => [
      index,
      paths.map((sequence) => {
        const oldLogprobs = old?.[next]?.oldLogprobs;
        const [refLogprobs, teacherLogprobs] = [reference?.[next], taught?.[next]];
        next++;
        const columns = {
          ...sequence.columns,
          ...(oldLogprobs ? { oldLogprobs } : {}),
          ...(refLogprobs ? { refLogprobs } : {}),
          ...(teacherLogprobs ? { teacherLogprobs } : {}),
        };
        return { ...sequence, columns };
      }),
    ]),
  );
}

function scoreWith(
  score: ScoreReference,
  sequences: readonly TrainSequence[],
  temperature: number,
): Promise<Float32Array[]> {
  const ranges = sequences.map(({ tokenIds, lossMask }) => ({ tokenIds, from: Array.from(lossMask).indexOf(1) }));
  return score(ranges, { temperature });
}

/** Whether a trajectory has a gradient through its advantages. */
export function hasAdvantage(advantages: ArrayLike<number>): boolean {
  for (let t = 0; t < advantages.length; t++) if (Math.abs(advantages[t]!) > 1e-8) return true;
  return false;
}

/** Logprobs by the weights as they are now: one more forward pass, for losses that rank a mini-batch's tokens. */
async function scoreNow(
  { engine }: Trainable,
  sequences: readonly TrainSequence[],
  temperature: number,
): Promise<Float32Array[]> {
  const scores = await engine.score(
    sequences.map(({ tokenIds, lossMask }) => ({ tokenIds, from: Array.from(lossMask).indexOf(1) })),
    { temperature },
  );
  return scores.map(({ logprobs }) => logprobs);
}
