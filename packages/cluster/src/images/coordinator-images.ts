import type { ImageLimits, LoadedImage } from "@cria/core";
import type { Blobs } from "../bus/job-bus.js";
import { fetchImage, storeImage } from "./fetch-image.js";
import { ImageCache } from "./image-cache.js";
import type { ImageExchange } from "./image-exchange.js";

/** Bytes that stay in the bus from one step to the next, where they take room from models. */
const KEPT_BYTES = 256 * 2 ** 20;
/** Time until an image is stored again: the bus drops blobs that are older than a day. */
const KEPT_MS = 3_600_000;

/** The images of a coordinator's jobs: all known images are in the bus. */
export class CoordinatorImages implements ImageExchange {
  private readonly cache: ImageCache;
  /** Images of jobs that are given out, each with the number of these jobs. */
  private readonly inHand = new Map<string, number>();
  /** Bytes sent or fetched so far. */
  bytes = 0;

  constructor(
    private readonly blobs: Pick<Blobs, "put" | "get" | "delete">,
    private readonly limits: ImageLimits,
    private readonly kept: { bytes: number; milliseconds: number } = { bytes: KEPT_BYTES, milliseconds: KEPT_MS },
    now?: () => number,
  ) {
    this.cache = new ImageCache(now);
  }

  async put(image: LoadedImage): Promise<void> {
    await this.cache.get(image.hash, async () => {
      await storeImage(this.blobs, image);
      return this.addBytes(image);
    });
  }

  get(sha256: string): Promise<LoadedImage> {
    return this.cache.get(sha256, async () => this.addBytes(await fetchImage(this.blobs, sha256, this.limits)));
  }

  /** The images of one job: those of its work stay in the bus until it is released. */
  ofJob(): ImageExchange & { release(): void } {
    const shown = new Set<string>();
    return {
      get: (sha256) => this.get(sha256),
      put: (image) => {
        if (!shown.has(image.hash)) this.count(image.hash, 1);
        shown.add(image.hash);
        return this.put(image);
      },
      release: () => {
        for (const sha of shown) this.count(sha, -1);
        shown.clear();
      },
    };
  }

  /** Deletes superfluous and old images from the bus, but those of jobs that are given out. Never rejects. */
  async forget(): Promise<void> {
    await this.drop(this.cache.trim(this.kept.bytes, this.kept.milliseconds, (sha) => this.inHand.has(sha)));
  }

  /** Deletes all images. Never rejects. */
  async close(): Promise<void> {
    await this.drop(this.cache.trim(0));
  }

  /** Forgets all images, because the bus lost its data. */
  lose(): void {
    this.cache.trim(0);
  }

  private count(sha: string, more: 1 | -1): void {
    const jobs = (this.inHand.get(sha) ?? 0) + more;
    if (jobs > 0) this.inHand.set(sha, jobs);
    else this.inHand.delete(sha);
  }

  private addBytes(image: LoadedImage): LoadedImage {
    this.bytes += image.bytes.byteLength;
    return image;
  }

  private async drop(hashes: readonly string[]): Promise<void> {
    await Promise.all(hashes.map((sha) => this.blobs.delete(sha).catch(() => undefined)));
  }
}
