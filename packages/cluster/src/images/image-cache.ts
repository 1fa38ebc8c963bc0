import type { LoadedImage } from "@cria/core";

interface Entry {
  image: Promise<LoadedImage>;
  /** Size of its file; 0 until it has arrived. */
  bytes: number;
  /** Time of its arrival, in milliseconds. */
  since: number;
}

/** Images by their SHA-256. Several requests for one image share a fetch. */
export class ImageCache {
  /** Least recently used first. */
  private readonly entries = new Map<string, Entry>();

  /** @param now in milliseconds. */
  constructor(private readonly now: () => number = Date.now) {}

  /**
   * The image, which `fetch` gets if it is not cached.
   * @throws the error of `fetch`; the next call tries again.
   */
  get(sha256: string, fetch: () => Promise<LoadedImage>): Promise<LoadedImage> {
    const entry = this.entries.get(sha256) ?? this.open(fetch);
    // Moves it to the end.
    this.entries.delete(sha256);
    this.entries.set(sha256, entry);
    entry.image.catch(() => this.entries.get(sha256) === entry && this.entries.delete(sha256));
    return entry.image;
  }

  /**
   * Forgets images older than `mostAge` milliseconds, and of the rest the least recently used, until at most
   * `mostBytes` of files are left. Images still being fetched stay, and those that are needed.
   * @returns the SHA-256 of forgotten images.
   */
  trim(
    mostBytes: number,
    mostAge = Number.POSITIVE_INFINITY,
    isNeeded: (sha256: string) => boolean = () => false,
  ): string[] {
    const entries = [...this.entries].filter(([, { bytes }]) => bytes > 0);
    let left = entries.reduce((sum, [, { bytes }]) => sum + bytes, 0);
    const forgotten: string[] = [];
    for (const [sha, { bytes, since }] of entries) {
      if (left <= mostBytes && this.now() - since <= mostAge) continue;
      if (isNeeded(sha)) continue;
      left -= bytes;
      this.entries.delete(sha);
      forgotten.push(sha);
    }
    return forgotten;
  }

  private open(fetch: () => Promise<LoadedImage>): Entry {
    const entry: Entry = { image: fetch(), bytes: 0, since: this.now() };
    entry.image.then(
      ({ bytes }) => {
        entry.bytes = bytes.byteLength;
      },
      () => undefined,
    );
    return entry;
  }
}
