import type { ChatAnswer, ChatEvent, ChatOptions } from "./chat-model.js";

interface Listener {
  onEvent?: (event: ChatEvent) => void;
  reject: (reason: unknown) => void;
}

/** An answer being generated, and its callers: the original call and equal calls that joined it. */
export class RunningTurn {
  private readonly controller = new AbortController();
  private readonly events: ChatEvent[] = [];
  private readonly listeners = new Set<Listener>();
  private readonly answer: Promise<ChatAnswer>;

  /** @param make generates the answer; its signal aborts when no caller is left. */
  constructor(make: (signal: AbortSignal, emit: (event: ChatEvent) => void) => Promise<ChatAnswer>) {
    this.answer = make(this.controller.signal, (event) => this.emit(event));
    // Callers handle the rejection.
    this.answer.catch(() => undefined);
  }

  /** True once aborted. It takes a while to stop, and may still finish its answer. */
  get isAborted(): boolean {
    return this.controller.signal.aborted;
  }

  /** Waits until generation has ended; resolves to true if it failed. */
  hasFailed(): Promise<boolean> {
    return this.answer.then(
      () => false,
      () => true,
    );
  }

  /**
   * Waits for the answer. A caller that joins late receives the earlier events at once. @throws the signal's reason
   * when it aborts.
   */
  join({ signal, onEvent }: ChatOptions = {}): Promise<ChatAnswer> {
    return new Promise((resolve, reject) => {
      const listener: Listener = { onEvent, reject };
      const leave = () => {
        signal?.removeEventListener("abort", abort);
        this.listeners.delete(listener);
      };
      const abort = () => {
        leave();
        reject(signal!.reason);
        if (this.listeners.size === 0) this.controller.abort(signal!.reason);
      };
      if (signal?.aborted) {
        this.listeners.add(listener);
        return abort();
      }
      signal?.addEventListener("abort", abort, { once: true });
      this.listeners.add(listener);
      for (const event of this.events) onEvent?.(event);
      this.answer.then(resolve, reject).finally(leave);
    });
  }

  /** Aborts the answer for all callers. */
  abort(reason: unknown): void {
    this.controller.abort(reason);
    for (const { reject } of [...this.listeners]) reject(reason);
  }

  private emit(event: ChatEvent): void {
    this.events.push(event);
    for (const { onEvent } of [...this.listeners]) onEvent?.(event);
  }
}
