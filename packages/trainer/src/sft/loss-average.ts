/** Weight of the earlier average: about the last 50 steps count. */
const DECAY = 0.98;

/** Plain JSON, for checkpoints. */
export interface LossAverageState {
  sum: number;
  count: number;
}

/** Moving average of a loss, without a bias towards its first values (Kingma & Ba 2015, arXiv:1412.6980, section 3). */
export class LossAverage {
  private state: LossAverageState = { sum: 0, count: 0 };

  /** NaN before the first value. */
  get value(): number {
    return this.state.sum / (1 - DECAY ** this.state.count);
  }

  add(loss: number): void {
    const { sum, count } = this.state;
    this.state = { sum: DECAY * sum + (1 - DECAY) * loss, count: count + 1 };
  }

  save(): LossAverageState {
    return this.state;
  }

  restore(state: LossAverageState): void {
    this.state = state;
  }
}
