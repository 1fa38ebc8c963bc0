import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { copyFile, mkdir, symlink } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { writeFileAtomically } from "@cria/core";

/** One file of a repository at a commit. */
export interface HubFile {
  /** Path in the repository, with slashes. */
  path: string;
  size: number;
  /** Hash of its content: SHA-256 for large files, Git's SHA-1 of a blob for small ones. */
  oid: string;
  algorithm: "sha256" | "git";
}

/** The content of a repository at a commit. */
export interface Listing {
  commit: string;
  files: HubFile[];
  /** Configs and splits from a dataset's card; null: none. */
  configs: unknown;
}

/**
 * A repository's part of the cache, in the layout that the hub's own clients share, so that they use each other's
 * downloads: `refs/<revision>` has a commit, `snapshots/<commit>/<path>` links to `blobs/<oid>`. Only Cria uses
 * `listings/<commit>.json`: the list of files, so that cached files need no network.
 */
export class HubCache {
  readonly folder: string;

  constructor(cacheFolder: string, type: "model" | "dataset", repository: string) {
    this.folder = join(cacheFolder, [`${type}s`, ...repository.split("/")].join("--"));
  }

  /** The commit that a revision had when it was first requested; null: never requested. */
  readCommit(revision: string): string | null {
    if (isCommit(revision)) return revision;
    const file = join(this.folder, "refs", revision);
    const text = existsSync(file) ? readFileSync(file, "utf8").trim() : "";
    return isCommit(text) ? text : null;
  }

  readListing(commit: string): Listing | null {
    try {
      return JSON.parse(readFileSync(this.listingFile(commit), "utf8")) as Listing;
    } catch {
      return null;
    }
  }

  async writeListing(revision: string, listing: Listing): Promise<void> {
    await writeFileAtomically(this.listingFile(listing.commit), JSON.stringify(listing));
    if (!isCommit(revision)) await writeFileAtomically(join(this.folder, "refs", revision), listing.commit);
  }

  blob(file: HubFile): string {
    return join(this.folder, "blobs", file.oid);
  }

  snapshot(commit: string, path: string): string {
    return join(this.folder, "snapshots", commit, ...path.split("/"));
  }

  /** Path of a complete file; null when it is not cached. */
  find(commit: string, file: HubFile): string | null {
    const path = this.snapshot(commit, file.path);
    return existsSync(path) ? path : null;
  }

  /** Links a complete blob to its name in the snapshot. */
  async link(commit: string, file: HubFile): Promise<string> {
    const path = this.snapshot(commit, file.path);
    await mkdir(dirname(path), { recursive: true });
    try {
      await symlink(relative(dirname(path), this.blob(file)), path);
    } catch (error) {
      // Another process was faster, or the file system does not support links.
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") await copyFile(this.blob(file), path);
    }
    return path;
  }

  private listingFile(commit: string): string {
    return join(this.folder, "listings", `${commit}.json`);
  }
}

function isCommit(text: string): boolean {
  return /^[0-9a-f]{40}$/.test(text);
}

/** Takes a file's bytes in order; at the end compares their hash with the hub's listing. */
export class Checksum {
  private readonly hash;

  constructor(file: HubFile) {
    this.hash = createHash(file.algorithm === "git" ? "sha1" : "sha256");
    if (file.algorithm === "git") this.hash.update(`blob ${file.size}\0`);
  }

  update(bytes: Uint8Array): void {
    this.hash.update(bytes);
  }

  /** The hash in the hub's notation. */
  finish(): string {
    return this.hash.digest("hex");
  }
}
