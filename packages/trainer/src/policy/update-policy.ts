import {
  type Algorithms,
  composePolicyLoss,
  correctRollout,
  type PolicyLossOptions,
  preparePolicyLoss,
  type RolloutCorrectionOptions,
} from "@cria/algorithms";
import {
  correctsTokensAlone,
  countLikeliest,
  defaultAlgorithms,
  listTermTokens,
  needsNoAdvantage,
  needsPreparation,
  type TermTokens,
  TOKEN_KIND,
  usesReference,
} from "@cria/algorithms/internal";
import {
  ConfigError,
  DataError,
  EngineError,
  type GradientShard,
  hashSeed,
  type LossFunction,
  type LossInputs,
  type LossTotals,
  makeUniform,
  type OptimizerOptions,
  type PolicyEngine,
  type ShardGradient,
  type TrainResult,
  type TrainSequence,
} from "@cria/core";
import { TokenTexts } from "@cria/records/internal";
import { updateOptions } from "../config/options/updates.js";
import type { Batch } from "./batch.js";
import { cutMiniBatches } from "./mini-batches.js";
import { type Demonstrations, drawDemonstrations, mixMiniBatch } from "./mix-mini-batch.js";
import { markObservations } from "./observations.js";
import { cutTrainSequences } from "./paths.js";
import { toCandidates } from "./teacher-candidates.js";
import type { ScoreReference, ScoreTokens, Teacher } from "./token-scores.js";

/** Options of an update. The defaults are those of the config. */
export interface UpdateOptions extends Omit<OptimizerOptions, "epsilon"> {
  /** Number of prompts per optimizer step; default: all of the batch. */
  miniBatchSize?: number;
  /** Number of passes over the batch; default 1. */
  epochs?: number;
  /** True if each pass distributes the prompts over the mini-batches in a new order; default true. */
  shuffle?: boolean;
  /** Determines that order, together with step and pass; default: the policy's seed. */
  seed?: number;
  /** Step of the training, from 1; default: the number of updates plus one. */
  step?: number;
  /**
   * Number of tokens of a micro-batch, padding included; default: chosen by model and memory. It does not change the
   * result.
   */
  microBatchTokens?: number;
  /** True if the batch's `oldLogprobs` were computed with the weights that the update starts from; default true. */
  isOnPolicy?: boolean;
  /**
   * Correction for a sampler with other probabilities, in a batch with columns `rolloutLogprobs` and without
   * `oldLogprobs`, so that the update's own forward pass gives these. Only weights of single tokens (`rolloutIs:
   * "token"`, not normalized), for one optimizer step; default: none.
   */
  correction?: RolloutCorrectionOptions;
  /** Registries for names in the loss; default: built-in and registered algorithms. */
  algorithms?: Algorithms;
  /** Teacher that scores a batch without scores, if the loss has a teacher term: `loadTeacher`. */
  teacher?: Pick<Teacher, "score">;
  /** Conversations that each optimizer step also learns to repeat, for a loss with `demonstrations`. Default: none. */
  demonstrations?: Demonstrations;
  /**
   * Called after each optimizer step of the first pass over the batch, with the logprobs and entropies of its own
   * forward pass: by index of trajectory in the batch, one entry per sequence, in order.
   */
  onScores?: (scores: ReadonlyMap<number, readonly SequenceScores[]>) => void;
  /** Called before each optimizer step, while the engine is free. */
  beforeStep?: () => Promise<void>;
  /**
   * Computes a micro-batch somewhere else, using `computePolicyGradient`; `here` computes it in this process. With the
   * same weights the bits are the same everywhere. Default: `here`.
   */
  compute?: (work: GradientWork, here: () => Promise<ShardGradient>) => Promise<ShardGradient>;
}

/** Scores of a sequence's tokens in the loss; other tokens have 0. */
export interface SequenceScores {
  logprobs: Float32Array;
  /** Entropy in nats. */
  entropy: Float32Array;
}

/**
 * A micro-batch of an update with everything except the weights that its gradient depends on. It is a plain value,
 * which can be sent to another machine.
 */
export interface GradientWork {
  shard: GradientShard;
  loss: PolicyLossOptions;
  /** Totals of the mini-batch, including trajectories without a gradient. */
  totals: LossTotals;
}

/** Computes the gradient of a micro-batch with the weights of this engine. */
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

/**
 * Composes the loss of an update. Sequences without `oldLogprobs` use the logprobs of the update's own pass, because
 * the update makes only one optimizer step, and the correction weighs by these.
 */
function composeUpdateLoss(
  loss: PolicyLossOptions,
  algorithms: Algorithms,
  correction?: RolloutCorrectionOptions,
): LossFunction {
  const compute = composePolicyLoss(loss, algorithms);
  return (inputs) => {
    const { columns, logprobs: oldLogprobs, offsets } = inputs;
    if (columns.oldLogprobs) return compute(inputs);
    const { rolloutLogprobs } = columns;
    if (!correction || !rolloutLogprobs) return compute({ ...inputs, columns: { ...columns, oldLogprobs } });
    const responseMask = new Uint8Array(oldLogprobs.length).fill(1);
    const { weights } = correctRollout({ oldLogprobs, rolloutLogprobs, responseMask, offsets }, correction);
    return compute({
      ...inputs,
      columns: { ...columns, oldLogprobs, ...(weights ? { rolloutIsWeights: weights } : {}) },
    });
  };
}

/** Defaults of an update. */
const usual = updateOptions.parse({});

/** The part of a policy that an update uses. */
interface Trainable {
  engine: Pick<PolicyEngine, "score" | "train" | "detokenize">;
  score: ScoreTokens;
  scoreReference: ScoreReference;
}

/** Updates the policy in mini-batches of prompts, one optimizer step each. */
export async function updatePolicy(
  policy: Trainable,
  batch: Batch,
  loss: PolicyLossOptions,
  options: UpdateOptions & { seed: number; step: number },
): Promise<TrainResult[]> {
  const { algorithms = defaultAlgorithms, isOnPolicy = true, microBatchTokens, seed: base, step } = options;
  const { lossMasks, temperature } = batch;
  const lossOptions = { ...loss, lossScaleFactor: loss.lossScaleFactor ?? batch.responseLength };
  const compute = composeUpdateLoss(lossOptions, algorithms, options.correction);
  const cut = {
    miniBatchSize: options.miniBatchSize ?? batch.groups.length,
    shuffle: options.shuffle ?? usual.shuffle,
  };
  const epochs = options.epochs ?? usual.epochs;
  const isOneUpdate = epochs === 1 && new Set(batch.groups).size <= cut.miniBatchSize;
  const needsOld = !isOneUpdate || needsPreparation(lossOptions, algorithms);
  if (options.correction) checkCorrection(options.correction, needsOld);
  const scored = batch.isScored
    ? batch.sequences
    : await scoreBatch(policy, batch, lossOptions, algorithms, { needsOld, teacher: options.teacher });
  const terms = listTermTokens(lossOptions, algorithms);
  const observed = terms.some(({ tokens }) => tokens === "observed") ? findObserved(policy, batch, scored) : null;
  const shows = checkDemonstrations(terms, options.demonstrations);
  const results: TrainResult[] = [];
  for (let round = 0; round < epochs; round++) {
    const seed = hashSeed(base, step, round);
    for (const [k, indices] of cutMiniBatches(batch.groups, cut, seed).entries()) {
      let sequences = indices.flatMap((i) => scored.get(i) ?? []);
      const demonstrations = shows ? drawDemonstrations(shows, hashSeed(seed, k, "demonstrations")) : [];
      if (sequences.length === 0 && demonstrations.length === 0) continue;
      if (sequences.length > 0 && needsPreparation(lossOptions, algorithms)) {
        const isFresh = isOnPolicy && results.length === 0;
        const logprobs = isFresh
          ? sequences.map(({ columns }) => columns!.oldLogprobs!)
          : await scoreNow(policy, sequences, temperature);
        sequences = preparePolicyLoss(lossOptions, sequences, logprobs, makeUniform(hashSeed(seed, k)), algorithms);
      }
      const { sequences: shown, totals } = mixMiniBatch({
        sequences,
        counts: indices.map((i) => scored.get(i)?.length ?? 0),
        lossMasks: indices.map((i) => lossMasks[i]!),
        weights: batch.lossWeights && indices.map((i) => batch.lossWeights![i]!),
        observed: observed && indices.flatMap((i) => observed.get(i) ?? []),
        demonstrations,
        terms,
      });
      const { learningRate, betas, weightDecay, maxGradNorm, compute: elsewhere, onScores } = options;
      // Other machines do not return these scores.
      const seen = onScores && !elsewhere && round === 0 ? new SeenScores(sequences) : null;
      await options.beforeStep?.();
      results.push(
        await policy.engine.train(
          shown,
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
          // No signal: a started update is always finished.
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

/** @throws ConfigError for a correction that the loss of a micro-batch cannot compute. */
function checkCorrection(correction: RolloutCorrectionOptions, needsOld: boolean): void {
  if (correctsTokensAlone(correction) && !needsOld) return;
  throw new ConfigError("cannot be computed by the update's own forward pass", {
    code: "config/bad-value",
    subject: "policy.train: correction",
    expected: 'rolloutIs "token" or null, not normalized, without rejections and veto; and one optimizer step',
    received: needsOld ? "an update that needs old logprobs before it" : JSON.stringify(correction),
    remedy: "policy.score gives oldLogprobs, and correctRollout the column rolloutIsWeights of the whole batch",
  });
}

/** Marks of observed tokens, for each sequence of each trajectory. */
type Observed = ReadonlyMap<number, readonly ArrayLike<number>[]>;

function findObserved(
  { engine }: Pick<Trainable, "engine">,
  { trajectories, lossMasks }: Batch,
  sequences: ReadonlyMap<number, readonly TrainSequence[]>,
): Observed {
  if (!trajectories) {
    throw new DataError("has no trajectories, in which the loss finds observations", {
      code: "data/no-trajectories",
      subject: "policy.train: batch",
      expected: "trajectories, as groups.toBatch and makeBatch give them",
      received: "none",
      remedy: "a loss without `observations`",
    });
  }
  const detokenize = (ids: ArrayLike<number>) => engine.detokenize(ids);
  const texts = new TokenTexts(detokenize);
  return new Map(
    [...sequences.keys()].map((index) => {
      const trajectory = trajectories[index]!;
      const marks = markObservations(trajectory, detokenize, texts);
      const cut = cutTrainSequences(trajectory, lossMasks[index]!, { marks }, false);
      return [index, cut.map(({ columns }) => columns!.marks!)];
    }),
  );
}

/** @throws ConfigError when a term of the loss sees demonstrations, and there are none. */
function checkDemonstrations(terms: readonly TermTokens[], given: Demonstrations | undefined): Demonstrations | null {
  const seen = terms.find(({ tokens }) => tokens === "demonstrated");
  if (!seen) return null;
  if (given && given.sequences.length > 0) return given;
  throw new ConfigError("has no demonstrations to learn from", {
    code: "config/no-demonstrations",
    subject: `policy.train: loss term "${seen.name}"`,
    expected: "the option demonstrations: { sequences, size }",
    received: given ? "no sequences" : "none",
    remedy: "policy.encodeConversation(messages) makes one",
  });
}

/** Collects the logprobs and entropies that the loss of an optimizer step receives, micro-batch by micro-batch. */
class SeenScores {
  private readonly scores: SequenceScores[];

  constructor(private readonly sequences: readonly TrainSequence[]) {
    this.scores = sequences.map(({ tokenIds: { length } }) => ({
      logprobs: new Float32Array(length),
      entropy: new Float32Array(length),
    }));
  }

  take({ sequenceIndices, offsets, logprobs, entropy, columns }: LossInputs): void {
    const kinds = columns[TOKEN_KIND];
    sequenceIndices.forEach((index, i) => {
      // Demonstrations follow the batch's own sequences.
      if (index >= this.sequences.length) return;
      const { lossMask } = this.sequences[index]!;
      const own = this.scores[index]!;
      let at = offsets[i]!;
      for (let t = 1; t < lossMask.length; t++) {
        if (!lossMask[t]) continue;
        while (kinds?.[at]) at++;
        own.logprobs[t] = logprobs[at]!;
        own.entropy[t] = entropy[at++]!;
      }
    });
  }

  /** @param indices trajectories of the mini-batch, in the order of its sequences. */
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
 * Adds columns to the sequences of a batch: `oldLogprobs` if they are needed before the update, `refLogprobs` if the
 * loss has a KL term, `teacherLogprobs` if it has a teacher, and candidates if it compares the teacher's likeliest tokens.
 * Leaves out trajectories without advantage, unless they have a gradient nevertheless.
 */
async function scoreBatch(
  policy: Trainable,
  { sequences, temperature }: Batch,
  loss: PolicyLossOptions,
  algorithms: Algorithms,
  { needsOld, teacher }: { needsOld: boolean; teacher: UpdateOptions["teacher"] },
): Promise<Map<number, readonly TrainSequence[]>> {
  const needsAll = needsNoAdvantage(loss, algorithms);
  const isWanted = ({ columns }: TrainSequence) => needsAll || hasAdvantage(columns!.advantages!);
  const wanted = [...sequences].filter(([, paths]) => paths.some(isWanted));
  const paths = wanted.flatMap(([, paths]) => paths);
  const old = needsOld ? await policy.score(paths, { temperature }) : null;
  const asked = paths.map(({ tokenIds, lossMask }) => ({ tokenIds, from: Array.from(lossMask).indexOf(1) }));
  const isAsked = paths.length > 0;
  const reference = usesReference(loss) && isAsked ? await policy.scoreReference(asked, { temperature }) : null;
  // If no teacher was given, the loss reports the missing column.
  const taught =
    loss.teacher !== null && teacher && isAsked
      ? await teacher.score(asked, { temperature, topk: countLikeliest(loss.teacher) })
      : null;
  let next = 0;
  return new Map(
    wanted.map(([index, paths]) => [
      index,
      paths.map((sequence) => {
        const oldLogprobs = old?.[next]?.oldLogprobs;
        const refLogprobs = reference?.[next];
        const { logprobs: teacherLogprobs, likeliest } = taught?.[next] ?? {};
        next++;
        const columns = {
          ...sequence.columns,
          ...(oldLogprobs ? { oldLogprobs } : {}),
          ...(refLogprobs ? { refLogprobs } : {}),
          ...(teacherLogprobs ? { teacherLogprobs } : {}),
        };
        return { ...sequence, columns, ...(likeliest ? { candidates: toCandidates(likeliest) } : {}) };
      }),
    ]),
  );
}

/** True if a trajectory has a gradient through its advantages. */
export function hasAdvantage(advantages: ArrayLike<number>): boolean {
  for (let t = 0; t < advantages.length; t++) if (Math.abs(advantages[t]!) > 1e-8) return true;
  return false;
}

/** Computes logprobs with the current weights: one more forward pass, for losses that rank a mini-batch's tokens. */
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
