/**
 * numpy's legacy generator (`np.random.seed`, `np.random.choice` with replacement): MT19937 of Matsumoto and
 * Nishimura, 1998. Other trainers' bootstraps draw from it, so that equal answers give equal numbers here.
 */
export class NumpyRandom {
  private readonly state = new Uint32Array(624);
  private position = 624;

  /** @param seed 32 bits. */
  constructor(seed: number) {
    let value = seed >>> 0;
    for (let i = 0; i < 624; i++) {
      this.state[i] = value;
      value = (Math.imul(1812433253, value ^ (value >>> 30)) + i + 1) >>> 0;
    }
  }

  /**
   * `size` whole numbers in [0, n), as `np.random.choice(n, size)`: draws are masked to n's bits, too large ones
   * rejected.
   */
  choice(n: number, size: number): Int32Array {
    const picked = new Int32Array(size);
    if (n <= 1) return picked;
    const mask = 0xffffffff >>> Math.clz32(n - 1);
    for (let i = 0; i < size; i++) {
      let value: number;
      do value = (this.nextUint32() & mask) >>> 0;
      while (value >= n);
      picked[i] = value;
    }
    return picked;
  }

  private nextUint32(): number {
    if (this.position === 624) this.twist();
    let y = this.state[this.position++]!;
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return (y ^ (y >>> 18)) >>> 0;
  }

  private twist(): void {
    const { state } = this;
    for (let i = 0; i < 624; i++) {
      const y = (state[i]! & 0x80000000) | (state[(i + 1) % 624]! & 0x7fffffff);
      state[i] = state[(i + 397) % 624]! ^ (y >>> 1) ^ (y & 1 ? 0x9908b0df : 0);
    }
    this.position = 0;
  }
}
