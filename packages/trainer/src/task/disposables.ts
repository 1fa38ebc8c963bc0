/** Closes opened parts, once and in reverse order; if one fails to close, the others are still closed. */
export class Disposables {
  private readonly closers: (() => unknown)[] = [];

  /** Opens parts one after another; if one cannot be opened, those already open are closed. */
  static async open<T>(openParts: (open: Disposables) => Promise<T>): Promise<T> {
    const open = new Disposables();
    try {
      return await openParts(open);
    } catch (error) {
      await open.dispose().catch(() => undefined);
      throw error;
    }
  }

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
