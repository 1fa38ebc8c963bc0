import { TokenizerError } from "@cria/core";
import { type RewardRequest, Semaphore } from "@cria/rollout";
import { JudgementError, type RewardModel } from "./reward-model.js";

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
  /** Sum of weight times score. */
  score: number;
  /**
   * Of each model `<name>_score` and `<name>_failed` (0, or 1 when it could not score: that counts as 0); where there are
   * any, `<name>_verdict` and `<name>_error`.
   */
  extra: Record<string, unknown>;
}

const longestTimer = 2 ** 31 - 1;

/** The models that score conversations beside the rules, and what runs on them. */
export class RewardModels {
  private readonly closing = new AbortController();
  private readonly slots: ReadonlyMap<WeightedRewardModel, Semaphore>;
  private readonly running = new Set<Promise<unknown>>();

  /** @param warn is told of each conversation that a model could not score. */
  constructor(
    private readonly models: readonly WeightedRewardModel[],
    private readonly warn: (warning: string) => void = () => undefined,
  ) {
    this.slots = new Map(models.map((entry) => [entry, new Semaphore(entry.concurrency)]));
  }

  /**
   * Asks all models at once. A conversation that a model cannot score, or not in time, is worth 0 to it.
   * @throws what ends the run: a server that refuses every request, an engine that fails, an abort of `signal`.
   */
  judge(request: RewardRequest, signal?: AbortSignal): Promise<CombinedScore> {
    const stop = signal ? AbortSignal.any([signal, this.closing.signal]) : this.closing.signal;
    const parts = this.models.map((entry) => this.track(this.ask(entry, request, stop)));
    return Promise.all(parts).then((scores) => ({
      score: scores.reduce((sum, { score }, i) => sum + this.models[i]!.weight * score, 0),
      extra: Object.assign({}, ...scores.map(({ extra }) => extra)) as Record<string, unknown>,
    }));
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

  private async ask(entry: WeightedRewardModel, request: RewardRequest, stop: AbortSignal): Promise<CombinedScore> {
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
      return describe(name, outcome, (reason) =>
        this.warn(
          `reward model ${name} could not score a conversation, which counts as 0\n  ${request.place}: ${reason}`,
        ),
      );
    } finally {
      slot.release();
    }
  }
}

function describe(
  name: string,
  outcome: { score: number; verdict?: string } | JudgementError,
  onFailure: (reason: string) => void,
): CombinedScore {
  const failed = outcome instanceof JudgementError;
  const score = failed ? 0 : outcome.score;
  const extra: Record<string, unknown> = { [`${name}_score`]: score, [`${name}_failed`]: failed ? 1 : 0 };
  if (outcome.verdict !== undefined) extra[`${name}_verdict`] = outcome.verdict;
  if (failed) {
    extra[`${name}_error`] = outcome.message;
    onFailure(outcome.message);
  }
  return { score, extra };
}
