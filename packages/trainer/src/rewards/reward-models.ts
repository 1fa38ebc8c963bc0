import { type ScorePart, TokenizerError } from "@cria/core";
import { type RewardRequest, Semaphore } from "@cria/rollout";
import { JudgementError, type ModelScore, type RewardModel } from "./reward-model.js";

export interface WeightedRewardModel {
  name: string;
  weight: number;
  model: RewardModel;
  /** Conversations judged at once. */
  concurrency: number;
  /** Seconds for each conversation, waiting for its turn not counted; null: no limit. */
  timeoutS: number | null;
}

export interface CombinedScore {
  /** Sum of weight times score over the models that gave a score. */
  score: number;
  /** Each model's part of it. */
  parts: ScorePart[];
  /** Why a model could not score; a sum without it would be no score. */
  error?: string;
  /** For each model `<name>_score` or `<name>_error`, and `<name>_verdict` if it wrote one. */
  extra: Record<string, unknown>;
}

const longestTimer = 2 ** 31 - 1;

/** The models that score conversations beside the rules, and the requests that run on them. */
export class RewardModels {
  private readonly closing = new AbortController();
  private readonly slots: ReadonlyMap<WeightedRewardModel, Semaphore>;
  private readonly running = new Set<Promise<unknown>>();

  constructor(private readonly models: readonly WeightedRewardModel[]) {
    this.slots = new Map(models.map((entry) => [entry, new Semaphore(entry.concurrency)]));
  }

  /**
   * Asks all models at once. One that cannot score the conversation, or not in time, is an `error`.
   * @throws what ends the run: a server that refuses every request, an engine that fails, an abort of `signal`.
   */
  judge(request: RewardRequest, signal?: AbortSignal): Promise<CombinedScore> {
    const stop = signal ? AbortSignal.any([signal, this.closing.signal]) : this.closing.signal;
    const parts = this.models.map((entry) => this.track(this.ask(entry, request, stop)));
    return Promise.all(parts).then((scores) => {
      const errors = scores.flatMap(({ error }) => error ?? []);
      return {
        score: scores.reduce((sum, { score }, i) => sum + this.models[i]!.weight * score, 0),
        parts: scores.flatMap(({ score, error }, i) => {
          const { name, weight } = this.models[i]!;
          return error === undefined ? [{ name, value: score, weight, by: `reward model ${name}` }] : [];
        }),
        extra: Object.assign({}, ...scores.map(({ extra }) => extra)) as Record<string, unknown>,
        ...(errors.length > 0 ? { error: errors.join("; ") } : {}),
      };
    });
  }

  /** Ends what still runs, then frees the models. */
  async dispose(): Promise<void> {
    this.closing.abort(new Error("the session has ended"));
    await Promise.allSettled(this.running);
    for (const { model } of this.models) await model.dispose?.();
  }

  private track<T>(work: Promise<T>): Promise<T> {
    const forget = () => this.running.delete(work);
    this.running.add(work);
    work.then(forget, forget);
    return work;
  }

  private async ask(
    entry: WeightedRewardModel,
    request: RewardRequest,
    stop: AbortSignal,
  ): Promise<Omit<CombinedScore, "parts">> {
    const { name, model, timeoutS } = entry;
    const slot = this.slots.get(entry)!;
    await slot.acquire();
    try {
      stop.throwIfAborted();
      const late = AbortSignal.timeout(timeoutS === null ? longestTimer : Math.min(timeoutS * 1000, longestTimer));
      const signal = AbortSignal.any([stop, late]);
      const result = await model.score(request, signal).catch((error: unknown) => {
        if (late.aborted && !stop.aborted) return new JudgementError(`no score within ${timeoutS} s`);
        if (error instanceof JudgementError) return error;
        // A template that cannot place one conversation's messages may place others'.
        if (error instanceof TokenizerError) return new JudgementError(error.message);
        throw error;
      });
      stop.throwIfAborted();
      const outcome = late.aborted ? new JudgementError(`no score within ${timeoutS} s`) : result;
      return describe(name, outcome);
    } finally {
      slot.release();
    }
  }
}

function describe(name: string, outcome: ModelScore | JudgementError): Omit<CombinedScore, "parts"> {
  const verdict = outcome.verdict === undefined ? {} : { [`${name}_verdict`]: outcome.verdict };
  if (!(outcome instanceof JudgementError))
    return { score: outcome.score, extra: { [`${name}_score`]: outcome.score, ...verdict } };
  const { message } = outcome;
  return { score: 0, error: `reward model ${name}: ${message}`, extra: { [`${name}_error`]: message, ...verdict } };
}
