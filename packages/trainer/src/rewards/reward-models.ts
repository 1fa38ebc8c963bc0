import { type ScorePart, TokenizerError } from "@cria/core";
import { type RewardRequest, Semaphore } from "@cria/rollout";
import { type GroupRewardModel, JudgementError, type ModelScore, type RewardModel } from "./reward-model.js";

export interface WeightedRewardModel {
  name: string;
  weight: number;
  model: RewardModel | GroupRewardModel;
  /** Number of conversations, or groups, judged at once. */
  concurrency: number;
  /** Time limit for each conversation or group in seconds, excluding the wait for a place; null: no limit. */
  timeoutS: number | null;
}

export interface CombinedScore {
  /** Sum of weight times score over the models that gave a score. */
  score: number;
  /** Contribution of each model. */
  parts: ScorePart[];
  /** Why a model could not score; the sum is then invalid. */
  error?: string;
  /** By model: `<name>_score` or `<name>_error`, and `<name>_verdict` if it wrote one. */
  extra: Record<string, unknown>;
}

const longestTimer = 2 ** 31 - 1;

/** Reward models that score conversations in addition to the rules, and their running requests. */
export class RewardModels {
  private readonly closing = new AbortController();
  private readonly slots: ReadonlyMap<WeightedRewardModel, Semaphore>;
  private readonly running = new Set<Promise<unknown>>();

  constructor(private readonly models: readonly WeightedRewardModel[]) {
    this.slots = new Map(models.map((entry) => [entry, new Semaphore(entry.concurrency)]));
  }

  /** True if a model compares the conversations of a prompt, so that it must see all of them at once. */
  get comparesGroups(): boolean {
    return this.models.some(({ model }) => "scoreGroup" in model);
  }

  /**
   * Asks all models at once, for each conversation. A model that fails or exceeds its time limit gives an `error`.
   * @throws errors that end the run: a server that refuses every request, an engine failure, an abort of `signal`.
   */
  async judge(requests: readonly RewardRequest[], signal?: AbortSignal): Promise<CombinedScore[]> {
    const stop = signal ? AbortSignal.any([signal, this.closing.signal]) : this.closing.signal;
    const scores = await Promise.all(this.models.map((entry) => this.askAll(entry, requests, stop)));
    return requests.map((_, i) => this.combine(scores.map((given) => given[i]!)));
  }

  private combine(scores: readonly Omit<CombinedScore, "parts">[]): CombinedScore {
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
  }

  /** Aborts running requests, then frees the models. */
  async dispose(): Promise<void> {
    this.closing.abort(new Error("the training has ended"));
    await Promise.allSettled(this.running);
    for (const { model } of this.models) await model.dispose?.();
  }

  private track<T>(work: Promise<T>): Promise<T> {
    const forget = () => this.running.delete(work);
    this.running.add(work);
    work.then(forget, forget);
    return work;
  }

  /** One model's scores of all conversations. */
  private async askAll(
    entry: WeightedRewardModel,
    requests: readonly RewardRequest[],
    stop: AbortSignal,
  ): Promise<Omit<CombinedScore, "parts">[]> {
    const { name, model } = entry;
    if (!("scoreGroup" in model)) {
      const ask = async (request: RewardRequest) =>
        describe(name, await this.ask(entry, (signal) => model.score(request, signal), stop));
      return Promise.all(requests.map((request) => this.track(ask(request))));
    }
    const scores = new Map<RewardRequest, Omit<CombinedScore, "parts">>();
    const ask = async (group: readonly RewardRequest[]) => {
      const outcome = await this.ask(entry, (signal) => model.scoreGroup(group, signal), stop);
      group.forEach((request, i) => {
        scores.set(request, describe(name, outcome instanceof JudgementError ? outcome : outcome[i]!));
      });
    };
    await Promise.all(groupByPrompt(requests).map((group) => this.track(ask(group))));
    return requests.map((request) => scores.get(request)!);
  }

  /** Result or error of a model; waits for one of its places. */
  private async ask<T>(
    entry: WeightedRewardModel,
    work: (signal: AbortSignal) => Promise<T>,
    stop: AbortSignal,
  ): Promise<T | JudgementError> {
    const { timeoutS } = entry;
    const slot = this.slots.get(entry)!;
    await slot.acquire();
    try {
      stop.throwIfAborted();
      const late = AbortSignal.timeout(timeoutS === null ? longestTimer : Math.min(timeoutS * 1000, longestTimer));
      const signal = AbortSignal.any([stop, late]);
      const result = await work(signal).catch((error: unknown) => {
        if (late.aborted && !stop.aborted) return makeLate(timeoutS);
        if (error instanceof JudgementError) return error;
        // The template may still accept other conversations' messages.
        if (error instanceof TokenizerError) return refuseTemplate(error);
        throw error;
      });
      stop.throwIfAborted();
      return late.aborted ? makeLate(timeoutS) : result;
    } finally {
      slot.release();
    }
  }
}

const makeLate = (timeoutS: number | null) =>
  new JudgementError(`did not come within ${timeoutS} s`, { code: "reward/timeout", subject: "score" });

function refuseTemplate(error: TokenizerError): JudgementError {
  const { subject } = error;
  const reason = error.message.slice(`${subject}: `.length);
  return new JudgementError(reason, { code: "reward/template", subject, cause: error });
}

/** Groups conversations by prompt. */
function groupByPrompt(requests: readonly RewardRequest[]): RewardRequest[][] {
  const groups = new Map<string, RewardRequest[]>();
  for (const request of requests) {
    const group = groups.get(request.uid);
    if (group) group.push(request);
    else groups.set(request.uid, [request]);
  }
  return [...groups.values()];
}

function describe(name: string, outcome: ModelScore | JudgementError): Omit<CombinedScore, "parts"> {
  const verdict = outcome.verdict === undefined ? {} : { [`${name}_verdict`]: outcome.verdict };
  if (!(outcome instanceof JudgementError))
    return { score: outcome.score, extra: { [`${name}_score`]: outcome.score, ...verdict } };
  const { message } = outcome;
  return { score: 0, error: `reward model ${name}: ${message}`, extra: { [`${name}_error`]: message, ...verdict } };
}
