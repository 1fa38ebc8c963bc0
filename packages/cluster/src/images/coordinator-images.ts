import type { ImageLimits, LoadedImage } from "@cria/core";
import type { Blobs } from "../bus/job-bus.js";
import { fetchImage, storeImage } from "./fetch-image.js";
import { ImageCache } from "./image-cache.js";
import type { ImageExchange } from "./image-exchange.js";

/** What stays in the bus from one step to the next, in bytes: there it takes room from models. */
const KEPT_BYTES = 256 * 2 ** 20;
/** The bus drops what is older than a day: what stays is put there anew before. */
const KEPT_MS = 3_600_000;

/** The images of a coordinator's jobs: all that it knows lie in the bus. */
export class CoordinatorImages implements ImageExchange {
  private readonly cache: ImageCache;
  /** Bytes that were sent, or fetched, so far. */
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
      return this.count(image);
    });
  }

  get(sha256: string): Promise<LoadedImage> {
    return this.cache.get(sha256, async () => this.count(await fetchImage(this.blobs, sha256, this.limits)));
  }

  /** Deletes from the bus what is too much or too old, while no job is under way. Never rejects. */
  async forget(): Promise<void> {
    await this.drop(this.cache.trim(this.kept.bytes, this.kept.milliseconds));
  }

  /** Deletes all of it. Never rejects. */
  async close(): Promise<void> {
    await this.drop(this.cache.trim(0));
  }

  /** The bus lost all that it had: nothing is there. */
  lose(): void {
    this.cache.trim(0);
  }

  private count(image: LoadedImage): LoadedImage {
    this.bytes += image.bytes.byteLength;
    return image;
  }

  private async drop(hashes: readonly string[]): Promise<void> {
    await Promise.all(hashes.map((sha) => this.blobs.delete(sha).catch(() => undefined)));
  }
}
