import { DataError, type ScorePart } from "@cria/core";
import { isUsableNumber, runOutsideEpisodes } from "@cria/episodes/internal";
import { isFatal } from "../is-fatal.js";
import { describeData, keepRecord, toPlainData } from "../plain-data.js";
import { describeError } from "../run-with-deadline.js";
import type { Judgement, RewardManager, RewardRequest } from "./reward-manager.js";

interface Waiting {
  request: RewardRequest;
  resolve: (judgement: Judgement) => void;
  reject: (reason: unknown) => void;
}

/** Passes the trajectories of one step, which end one by one, to a manager that may want them all at once. */
export class RewardQueue {
  private readonly waiting: Waiting[] = [];

  /** @param expected number of conversations that will call `judge` or `leave`. */
  constructor(
    private readonly manager: RewardManager,
    private expected: number,
    private readonly signal?: AbortSignal,
  ) {}

  /** True if each trajectory is judged apart from the others. */
  get judgesEach(): boolean {
    return this.manager.granularity === "sample";
  }

  /**
   * Judges at once, or when the last conversation has ended, depending on the manager's granularity.
   * @throws errors that end the run: an abort, and errors of config, data and engine.
   */
  async judge(request: RewardRequest): Promise<Judgement> {
    if (this.judgesEach) return (await this.ask([request]))[0]!;
    return new Promise((resolve, reject) => {
      this.waiting.push({ request, resolve, reject });
      this.judgeIfComplete();
    });
  }

  /** Removes a failed conversation, so that the others do not wait for it. */
  leave(): void {
    this.expected--;
    this.judgeIfComplete();
  }

  /** Adds a conversation that was judged and runs again; it will call `judge` or `leave` once more. */
  rejoin(): void {
    this.expected++;
  }

  private judgeIfComplete(): void {
    if (this.judgesEach || this.waiting.length === 0 || this.waiting.length < this.expected) return;
    // Ordered by row and sample, whatever finished first, so that a function sees the same batch each time.
    const batch = this.waiting.splice(0).sort((a, b) => a.request.order - b.request.order);
    this.expected -= batch.length;
    runOutsideEpisodes(() => this.ask(batch.map(({ request }) => request))).then(
      (judgements) => {
        for (const [i, { resolve }] of batch.entries()) resolve(judgements[i]!);
      },
      (reason) => {
        for (const { reject } of batch) reject(reason);
      },
    );
  }

  private async ask(requests: readonly RewardRequest[]): Promise<Judgement[]> {
    let judgements: Judgement[];
    try {
      judgements = await this.manager.judge(requests, this.signal);
    } catch (cause) {
      if (this.signal?.aborted || isFatal(cause)) throw cause;
      const error = `the reward manager failed: ${describeError(cause)}`;
      return requests.map(() => ({ error, extra: {} }));
    }
    if (judgements?.length === requests.length) return judgements.map(readJudgement);
    throw new DataError("has another number of judgements than trajectories", {
      code: "data/bad-reward",
      subject: `batch of ${requests.length} trajectories`,
      expected: `${requests.length} judgements from the reward manager`,
      received: describeData(judgements?.length),
    });
  }
}

/** Copies the judgement of a manager, which may be user code. Never throws. */
function readJudgement(judgement: Judgement): Judgement {
  try {
    const extra = keepRecord(judgement.extra);
    if ("error" in judgement) return { error: describeError(judgement.error), extra };
    const { score, parts } = judgement;
    const known = toPlainData(parts);
    if (isUsableNumber(score)) return { score, extra, ...(isParts(known) ? { parts: known } : {}) };
    return { error: `the reward manager gave a score of ${describeData(score)}`, extra };
  } catch (cause) {
    return { error: `the reward manager's judgement cannot be read: ${describeError(cause)}`, extra: {} };
  }
}

function isParts(value: unknown): value is ScorePart[] {
  const isPart = ({ name, value, weight, by }: Partial<Record<keyof ScorePart, unknown>>) =>
    typeof name === "string" && typeof by === "string" && isUsableNumber(value) && isUsableNumber(weight);
  return Array.isArray(value) && value.every((part) => typeof part === "object" && part !== null && isPart(part));
}
