import type { LoadedImage } from "@cria/core";

interface Entry {
  image: Promise<LoadedImage>;
  /** Of its file; 0 until it is there. */
  bytes: number;
  /** When it came, in milliseconds. */
  since: number;
}

/** Images by their SHA-256. What several ask for is fetched once. */
export class ImageCache {
  /** The one unused longest first. */
  private readonly entries = new Map<string, Entry>();

  /** @param now in milliseconds. */
  constructor(private readonly now: () => number = Date.now) {}

  /** The image, which `fetch` gets where it is not here. @throws what `fetch` throws; then it may be asked for again. */
  get(sha256: string, fetch: () => Promise<LoadedImage>): Promise<LoadedImage> {
    const entry = this.entries.get(sha256) ?? this.open(fetch);
    // The newest last.
    this.entries.delete(sha256);
    this.entries.set(sha256, entry);
    entry.image.catch(() => this.entries.get(sha256) === entry && this.entries.delete(sha256));
    return entry.image;
  }

  /**
   * Forgets what has been here for longer than `mostAge` milliseconds, and of the rest those unused longest, until at most
   * `mostBytes` of files are left.
   * @returns the SHA-256 of what it forgets. Those on their way stay.
   */
  trim(mostBytes: number, mostAge = Number.POSITIVE_INFINITY): string[] {
    const entries = [...this.entries].filter(([, { bytes }]) => bytes > 0);
    let left = entries.reduce((sum, [, { bytes }]) => sum + bytes, 0);
    const forgotten: string[] = [];
    for (const [sha, { bytes, since }] of entries) {
      if (left <= mostBytes && this.now() - since <= mostAge) continue;
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
