/** Values that one side adds and the other takes one by one, in order. */
export class EventQueue<Value> {
  private readonly values: Value[] = [];
  private hasEnded = false;
  private error: unknown = null;
  private wake: () => void = () => {};

  add(value: Value): void {
    this.values.push(value);
    this.wake();
  }

  /** Says that no more come; with an error, whoever takes them fails then. */
  end(error: unknown = null): void {
    this.hasEnded = true;
    this.error = error;
    this.wake();
  }

  async *take(): AsyncGenerator<Value, void, undefined> {
    for (;;) {
      while (this.values.length > 0) yield this.values.shift()!;
      if (this.hasEnded) break;
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
    if (this.error !== null) throw this.error;
  }
}
