import type { ChatAnswer, ChatEvent, ChatOptions } from "./chat-model.js";

interface Listener {
  onEvent?: (event: ChatEvent) => void;
  reject: (reason: unknown) => void;
}

/** An answer that is being made, and those who wait for it: the call itself, and calls that ask the same meanwhile. */
export class RunningTurn {
  private readonly controller = new AbortController();
  private readonly events: ChatEvent[] = [];
  private readonly listeners = new Set<Listener>();
  private readonly answer: Promise<ChatAnswer>;

  /** @param make what makes the answer; its signal aborts when nobody waits for it any more. */
  constructor(make: (signal: AbortSignal, emit: (event: ChatEvent) => void) => Promise<ChatAnswer>) {
    this.answer = make(this.controller.signal, (event) => this.emit(event));
    // Those who wait hear of it.
    this.answer.catch(() => undefined);
  }

  /** Whether it was aborted; it takes a while to end, and may have its answer by then. */
  get isAborted(): boolean {
    return this.controller.signal.aborted;
  }

  /** Waits for its end. */
  hasFailed(): Promise<boolean> {
    return this.answer.then(
      () => false,
      () => true,
    );
  }

  /** Waits for the answer; who comes late gets its earlier events at once. @throws the signal's reason when it aborts. */
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

  /** Ends the answer, whoever waits. */
  abort(reason: unknown): void {
    this.controller.abort(reason);
    for (const { reject } of [...this.listeners]) reject(reason);
  }

  private emit(event: ChatEvent): void {
    this.events.push(event);
    for (const { onEvent } of [...this.listeners]) onEvent?.(event);
  }
}
