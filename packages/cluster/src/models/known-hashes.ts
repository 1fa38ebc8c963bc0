import { readFile } from "node:fs/promises";
import { writeFileAtomically } from "@cria/core";
import { userCacheFolder } from "@cria/core/internal";
import { z } from "zod";
import { sha256 } from "../jobs/packed.js";

/** Number of remembered hashes: the newest ones. */
const MOST = 1000;
const schema = z.array(z.tuple([z.string(), sha256])).max(2 * MOST);

/** Hashes of files that were read before, in the user's cache. An unreadable or unwritable cache counts as empty. */
export class KnownHashes {
  private constructor(private readonly file: string) {}

  private entries = new Map<string, string>();

  static async open(): Promise<KnownHashes> {
    const known = new KnownHashes(userCacheFolder("model-hashes.json"));
    await known.read();
    return known;
  }

  get(key: string): string | undefined {
    return this.entries.get(key);
  }

  async add(key: string, sha: string): Promise<void> {
    // Another process may have added some.
    await this.read();
    this.entries.set(key, sha);
    const newest = [...this.entries].slice(-MOST);
    await writeFileAtomically(this.file, JSON.stringify(newest)).catch(() => undefined);
  }

  private async read(): Promise<void> {
    try {
      this.entries = new Map(schema.parse(JSON.parse(await readFile(this.file, "utf8"))));
    } catch {
      // A new one replaces it.
    }
  }
}
