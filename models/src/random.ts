import { makeUniform } from "@cria/core";

/** A seeded source of the random choices that problems and demonstrations need. */
export class Random {
  private readonly uniform: () => number;

  constructor(seed: number) {
    this.uniform = makeUniform(seed);
  }

  /** In [0, 1). */
  next(): number {
    return this.uniform();
  }

  /** A whole number from low to high, both included. */
  integer(low: number, high: number): number {
    return low + Math.floor(this.uniform() * (high - low + 1));
  }

  /** A normal value of mean 0 and variance 1 (Box and Muller 1958). */
  normal(): number {
    return Math.sqrt(-2 * Math.log(1 - this.uniform())) * Math.cos(2 * Math.PI * this.uniform());
  }

  pick<T>(items: readonly T[]): T {
    return items[Math.floor(this.uniform() * items.length)]!;
  }

  /** Two different items. */
  pickTwo<T>(items: readonly T[]): [T, T] {
    const first = this.integer(0, items.length - 1);
    const second = (first + this.integer(1, items.length - 1)) % items.length;
    return [items[first]!, items[second]!];
  }
}
