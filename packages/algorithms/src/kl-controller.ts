export interface KlControllerOptions {
  type: "fixed" | "adaptive";
  /** Coefficient at the start. */
  coefficient: number;
  /** adaptive: the target KL. */
  targetKl: number;
  /** adaptive: trajectories in which an error of 20 % changes the coefficient by about 20 %. */
  horizon: number;
}

/**
 * Coefficient of the KL penalty in the reward. Adaptive (Ziegler et al. 2019, arXiv:1909.08593): after each use,
 * coefficient x (1 + clip(kl / target - 1, -0.2, 0.2) n / horizon), n the number of trajectories.
 */
export class KlController {
  private current: number;

  constructor(private readonly options: KlControllerOptions) {
    this.current = options.coefficient;
  }

  get coefficient(): number {
    return this.current;
  }

  update(kl: number, n: number): void {
    if (this.options.type === "fixed") return;
    const { targetKl, horizon } = this.options;
    const error = Math.max(-0.2, Math.min(0.2, kl / targetKl - 1));
    this.current *= 1 + (error * n) / horizon;
  }

  /** State for checkpoints. */
  save(): { coefficient: number } {
    return { coefficient: this.current };
  }

  restore(state: { coefficient: number }): void {
    this.current = state.coefficient;
  }
}
