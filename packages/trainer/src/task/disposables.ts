/** Closes what was opened, once and in reverse order; when one part fails to close, the others are still closed. */
export class Disposables {
  private readonly closers: (() => unknown)[] = [];

  add(close: () => unknown): void {
    this.closers.push(close);
  }

  /** @throws the first error of a part, once all are closed. */
  async dispose(): Promise<void> {
    const errors: unknown[] = [];
    for (let close = this.closers.pop(); close; close = this.closers.pop()) {
      try {
        await close();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  }
}
