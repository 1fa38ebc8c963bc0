import { createHash } from "node:crypto";
import { DataError, hashSeed, type LoadedImage } from "@cria/core";
import { shuffleIndices } from "@cria/core/internal";
import { hideVectors } from "@cria/rollout/internal";

const BATCHES_A_BUCKET = 8;

/** Number of batches handed out, and everything that determines them. Plain JSON, for checkpoints. */
export interface BatchesState {
  batches: number;
  batchSize: number;
  seed: number;
  examples: number;
  /** Missing in states of earlier versions: true. */
  grouped?: boolean;
  /** Hash of the examples' tokens and images, in order. */
  tokens: string;
}

/**
 * Endless batches of examples; grouped by similar length if requested, to reduce padding. Eight batches' worth of
 * examples are drawn in a seeded order, sorted by length, cut into batches, and handed out in random order. Every
 * example occurs once per epoch.
 */
export class BucketedBatches<Example extends { tokenIds: ArrayLike<number>; images?: readonly LoadedImage[] }> {
  private queue: Example[][] = [];
  private order: ArrayLike<number> = [];
  private position = 0;
  private epoch = 0;
  private round = 0;
  private handedOut = 0;
  private hash: string | undefined;

  /**
   * @param vocabSize image-vector ids start here; they are only valid within this process.
   * @param isGrouped false: batches mix all lengths.
   */
  constructor(
    private readonly examples: readonly Example[],
    private readonly batchSize: number,
    private readonly seed: number,
    private readonly vocabSize: number,
    private readonly isGrouped = true,
  ) {}

  next(): Example[] {
    if (this.queue.length === 0) this.fill();
    this.handedOut++;
    return this.queue.pop()!;
  }

  /** @param batches number of batches handed out at that time; default: the current number. */
  save(batches = this.handedOut): BatchesState {
    return { batches, ...this.describe() };
  }

  /**
   * Continues exactly where `state` was saved. Call it before taking the first batch.
   * @throws DataError when it was saved over other conversations, or with another batch size or seed.
   */
  restore(state: BatchesState): void {
    for (const [name, value] of Object.entries(this.describe())) {
      const saved = { grouped: true, ...state }[name as keyof BatchesState];
      if (saved === value) continue;
      throw new DataError("was saved over others", {
        code: "data/other-loader",
        subject: `the order of the conversations: ${name}`,
        expected: `${value} (of this run)`,
        received: `${saved} (saved)`,
        remedy:
          "resume with the same files, data.max_length, data.train_batch_size, data.group_by_length and trainer.seed, or start a new run: trainer.resume_mode=disable",
      });
    }
    // Replaying the order is cheap: a batch is a list of references.
    while (this.handedOut < state.batches) this.next();
  }

  private describe(): Omit<BatchesState, "batches"> {
    this.hash ??= this.hashTokens();
    const { batchSize, seed, isGrouped: grouped } = this;
    return { batchSize, seed, examples: this.examples.length, grouped, tokens: this.hash };
  }

  private hashTokens(): string {
    const hash = createHash("sha256");
    for (const { tokenIds, images = [] } of this.examples) {
      hash.update(Int32Array.of(tokenIds.length));
      hash.update(Int32Array.from(hideVectors(tokenIds, this.vocabSize)));
      for (const image of images) hash.update(image.hash);
    }
    return hash.digest("hex").slice(0, 16);
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
    if (this.isGrouped) bucket.sort((a, b) => a.tokenIds.length - b.tokenIds.length);
    const shuffled = shuffleIndices(BATCHES_A_BUCKET, hashSeed(this.seed, "bucket", this.round++));
    this.queue = Array.from(shuffled, (i) => bucket.slice(i * this.batchSize, (i + 1) * this.batchSize));
  }
}
