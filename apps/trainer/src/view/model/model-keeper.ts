import { Semaphore } from "@cria/rollout";
import { type OpenReplayOptions, openReplay, type Replay } from "@cria/trainer";

export interface ModelKeeperOptions {
  /** Milliseconds that a model stays loaded after its last use; default 5 minutes. */
  idleMs?: number;
  open?: (path: string, options: OpenReplayOptions) => Promise<Replay>;
}

/** The models of runs, loaded on demand: one at a time, kept for a while, and one question after the other. */
export class ModelKeeper {
  private readonly turn = new Semaphore(1);
  private opened: { path: string; replay: Replay } | null = null;
  private timer: NodeJS.Timeout | undefined;
  private readonly ending = new AbortController();

  constructor(private readonly options: ModelKeeperOptions = {}) {}

  /**
   * @param path of the run.
   * @param signal of the caller; the signal that `work` gets also aborts when the keeper closes.
   * @throws errors of opening the run; the signal's reason.
   */
  async use<T>(
    path: string,
    signal: AbortSignal,
    work: (replay: Replay, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const either = AbortSignal.any([signal, this.ending.signal]);
    await this.turn.acquire();
    clearTimeout(this.timer);
    try {
      either.throwIfAborted();
      return await work(await this.find(path), either);
    } finally {
      if (this.opened && !this.ending.signal.aborted) {
        this.timer = setTimeout(() => void this.unload(), this.options.idleMs ?? 5 * 60_000);
        this.timer.unref();
      }
      this.turn.release();
    }
  }

  /** The run whose model is loaded. */
  get loaded(): string | null {
    return this.opened?.path ?? null;
  }

  /** Aborts running work, and frees the model. */
  async close(): Promise<void> {
    this.ending.abort(new Error("the viewer is closed"));
    await this.unload();
  }

  private async find(path: string): Promise<Replay> {
    if (this.opened?.path === path) return this.opened.replay;
    await this.drop();
    const { open = openReplay } = this.options;
    const replay = await open(path, {});
    this.opened = { path, replay };
    return replay;
  }

  private async unload(): Promise<void> {
    await this.turn.acquire();
    try {
      clearTimeout(this.timer);
      await this.drop();
    } finally {
      this.turn.release();
    }
  }

  private async drop(): Promise<void> {
    const { opened } = this;
    this.opened = null;
    await opened?.replay.close();
  }
}
