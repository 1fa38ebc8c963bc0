/** Seconds spent by name. */
export class Stopwatch {
  private readonly started = performance.now();
  private readonly spent: Record<string, number> = {};

  /** @param onWork called with the name of each piece of work as it begins. */
  constructor(private readonly onWork?: (name: string) => void) {}

  async time<T>(name: string, work: () => Promise<T>): Promise<T> {
    this.onWork?.(name);
    const start = performance.now();
    try {
      return await work();
    } finally {
      this.add(name, start);
    }
  }

  timeSync<T>(name: string, work: () => T): T {
    this.onWork?.(name);
    const start = performance.now();
    const result = work();
    this.add(name, start);
    return result;
  }

  seconds(): Record<string, number> {
    return { ...this.spent, step: (performance.now() - this.started) / 1000 };
  }

  private add(name: string, start: number): void {
    this.spent[name] = (this.spent[name] ?? 0) + (performance.now() - start) / 1000;
  }
}
