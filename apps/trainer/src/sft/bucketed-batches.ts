import { hashSeed, shuffleIndices } from "@cria/rollout";

const BATCHES_A_BUCKET = 8;

/**
 * Endless batches of examples of similar length, so that little is padded: eight batches' worth are drawn in an order that
 * the seed decides, sorted, cut, and handed out in random order. Every example comes once an epoch.
 */
export class BucketedBatches<Example extends { tokenIds: ArrayLike<number> }> {
  private queue: Example[][] = [];
  private order: ArrayLike<number> = [];
  private position = 0;
  private epoch = 0;
  private round = 0;

  constructor(
    private readonly examples: readonly Example[],
    private readonly batchSize: number,
    private readonly seed: number,
  ) {}

  next(): Example[] {
    if (this.queue.length === 0) this.fill();
    return this.queue.pop()!;
  }

  private fill(): void {
    const bucket: Example[] = [];
    while (bucket.length < this.batchSize * BATCHES_A_BUCKET) {
      if (this.position >= this.order.length) {
        this.order = shuffleIndices(this.examples.length, hashSeed(this.seed, "sft", this.epoch++));
        this.position = 0;
      }
      bucket.push(this.examples[this.order[this.position++]!]!);
    }
    bucket.sort((a, b) => a.tokenIds.length - b.tokenIds.length);
    const shuffled = shuffleIndices(BATCHES_A_BUCKET, hashSeed(this.seed, "bucket", this.round++));
    this.queue = Array.from(shuffled, (i) => bucket.slice(i * this.batchSize, (i + 1) * this.batchSize));
  }
}
