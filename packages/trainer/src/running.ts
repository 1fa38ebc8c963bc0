/** Work in progress: await it for its result. */
export abstract class Running<Result> implements PromiseLike<Result> {
  protected abstract readonly result: Promise<Result>;

  // biome-ignore lint/suspicious/noThenProperty: it is awaited as a promise is.
  then<A = Result, B = never>(
    onResult?: ((result: Result) => A | PromiseLike<A>) | null,
    onError?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.result.then(onResult, onError);
  }
}

/** Work in progress that yields items: await its result, iterate over its items, or both. */
export abstract class RunningStream<Result, Item> extends Running<Result> implements AsyncIterable<Item> {
  protected readonly items: Item[] = [];
  protected isOver = false;
  private wake: (() => void)[] = [];

  /**
   * Yields all items from the first on, even if the iteration begins late. @throws the error that ended the work,
   * after its items.
   */
  [Symbol.asyncIterator](): AsyncGenerator<Item> {
    // The iteration throws a failure, so the promise need not be awaited as well.
    this.result.catch(() => undefined);
    return this.iterate();
  }

  /** Asks the work to stop, because an iteration was left. Also called when the work is over. */
  protected abstract leave(): void;

  /** Gives an item to every iteration. */
  protected add(item: Item): void {
    this.items.push(item);
    this.notify();
  }

  /** The work's promise; the iterations end when it settles. */
  protected watch(work: Promise<Result>): Promise<Result> {
    return work.finally(() => {
      this.isOver = true;
      this.notify();
    });
  }

  private async *iterate(): AsyncGenerator<Item> {
    try {
      for (let next = 0; ; ) {
        while (next < this.items.length) yield this.items[next++]!;
        if (this.isOver) break;
        await new Promise<void>((resolve) => this.wake.push(resolve));
      }
    } finally {
      this.leave();
    }
    await this.result;
  }

  private notify(): void {
    for (const resolve of this.wake.splice(0)) resolve();
  }
}
