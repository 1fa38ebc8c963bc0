import type { Judgement, RewardManager, RewardRequest } from "./reward-manager.js";

interface Waiting {
  request: RewardRequest;
  resolve: (judgement: Judgement) => void;
  reject: (reason: unknown) => void;
}

/** Brings the trajectories of one step, which end one by one, to a manager that may want them all at once. */
export class RewardQueue {
  private readonly waiting: Waiting[] = [];

  /** @param expected conversations that will call `judge` or `leave`. */
  constructor(
    private readonly manager: RewardManager,
    private expected: number,
    private readonly signal?: AbortSignal,
  ) {}

  /** Resolves at once, or when the last conversation has ended, by the manager's granularity. */
  async judge(request: RewardRequest): Promise<Judgement> {
    if (this.manager.granularity === "sample") return (await this.manager.judge([request], this.signal))[0]!;
    return new Promise((resolve, reject) => {
      this.waiting.push({ request, resolve, reject });
      this.judgeIfComplete();
    });
  }

  /** A conversation failed, and will not be judged: the others do not wait for it. */
  leave(): void {
    this.expected--;
    this.judgeIfComplete();
  }

  private judgeIfComplete(): void {
    if (this.manager.granularity === "sample" || this.waiting.length === 0 || this.waiting.length < this.expected)
      return;
    // In the order of rows and samples, however long each took, so that a function sees the same batch each time.
    const batch = this.waiting.splice(0).sort((a, b) => a.request.order - b.request.order);
    this.manager
      .judge(
        batch.map(({ request }) => request),
        this.signal,
      )
      .then(
        (judgements) => {
          for (const [i, { resolve }] of batch.entries()) resolve(judgements[i]!);
        },
        (reason) => {
          for (const { reject } of batch) reject(reason);
        },
      );
  }
}
