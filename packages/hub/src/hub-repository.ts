import { HubError } from "@cria/core";
import { type HubProblem, makeHubError } from "./describe-problem.js";
import { downloadBlob, makeFetch } from "./download-blob.js";
import { HubCache, type HubFile, type Listing } from "./hub-cache.js";
import { type HubSettings, readHubSettings } from "./hub-settings.js";

/** Progress of a download, over all files of an address. */
export interface HubProgress {
  /** The current download: owner/name and file. */
  label: string;
  /** Bytes downloaded, and in total. */
  done: number;
  total: number;
}

export interface FetchOptions {
  /** Called about ten times per second during downloads; never when all files are cached. */
  onProgress?: (progress: HubProgress) => void;
  signal?: AbortSignal;
  /** Default: from the variables of `readHubSettings`. */
  settings?: HubSettings;
}

/** One repository at one revision. Uses the cache where possible, else the hub. */
export class HubRepository {
  private readonly cache: HubCache;
  private readonly settings: HubSettings;

  constructor(
    readonly type: "model" | "dataset",
    readonly name: string,
    readonly revision: string,
    private readonly options: FetchOptions = {},
  ) {
    this.settings = options.settings ?? readHubSettings();
    this.cache = new HubCache(this.settings.cacheFolder, type, name);
  }

  /**
   * The files at the revision. A revision that was requested before keeps its commit, so that a run that is resumed
   * tomorrow uses the same bytes.
   * @throws HubError when the hub cannot be reached, or does not know the repository.
   */
  async list(): Promise<Listing> {
    const known = this.cache.readCommit(this.revision);
    const listing = known === null ? null : this.cache.readListing(known);
    if (listing) return listing;
    if (this.settings.offline) throw this.fail("is not in the cache", { offline: true, received: "none of its files" });
    const fetched = await this.guard(() => this.fetchListing(known ?? this.revision));
    await this.guard(() => this.cache.writeListing(this.revision, fetched));
    return fetched;
  }

  /** Paths of files on this machine; downloads missing ones. @throws HubError */
  async fetch(listing: Listing, files: readonly HubFile[]): Promise<string[]> {
    const missing = files.filter((file) => this.cache.find(listing.commit, file) === null);
    if (missing.length > 0 && this.settings.offline)
      throw this.fail("is only partly in the cache", { offline: true, received: `${missing[0]!.path} is missing` });
    const total = missing.reduce((sum, { size }) => sum + size, 0);
    let before = 0;
    for (const file of missing) {
      await this.guard(() =>
        downloadBlob(file, this.cache.blob(file), {
          repo: { type: this.type, name: this.name },
          commit: listing.commit,
          settings: this.settings,
          signal: this.options.signal,
          onBytes: (done) =>
            this.options.onProgress?.({ label: `${this.name}/${file.path}`, done: before + done, total }),
        }),
      );
      await this.guard(() => this.cache.link(listing.commit, file));
      before += file.size;
    }
    return files.map((file) => this.cache.snapshot(listing.commit, file.path));
  }

  private async fetchListing(revision: string): Promise<Listing> {
    const { datasetInfo, listFiles, modelInfo } = await import("@huggingface/hub");
    const { endpoint, token } = this.settings;
    const common = { hubUrl: endpoint, accessToken: token, fetch: makeFetch(this.options.signal) };
    const asked = { ...common, name: this.name, revision };
    const info: { sha?: string; cardData?: unknown } =
      this.type === "model"
        ? await modelInfo({ ...asked, additionalFields: ["sha"] })
        : await datasetInfo({ ...asked, additionalFields: ["sha", "cardData"] });
    if (!/^[0-9a-f]{40}$/.test(info.sha ?? "")) throw new Error("the hub names no commit");
    const files: HubFile[] = [];
    const repo = { type: this.type, name: this.name };
    for await (const entry of listFiles({ ...common, repo, revision: info.sha, recursive: true })) {
      const oid = entry.lfs?.oid ?? entry.oid ?? "";
      // Both become parts of paths here.
      const isSafe = /^[0-9a-f]{40,64}$/.test(oid) && !/(^|[/\\])\.{0,2}([/\\]|$)/.test(entry.path);
      if (entry.type !== "file" || !isSafe) continue;
      const { path, lfs, size } = entry;
      files.push({ path, size: lfs?.size ?? size, oid, algorithm: lfs ? "sha256" : "git" });
    }
    const configs = (info.cardData as { configs?: unknown } | undefined)?.configs ?? null;
    return { commit: info.sha!, files, configs };
  }

  fail(summary: string, problem: HubProblem): HubError {
    return makeHubError(summary, {
      ...problem,
      type: this.type,
      name: this.name,
      revision: this.revision,
      settings: this.settings,
    });
  }

  /** Converts errors of the network, the hub and the file system to errors with a remedy. */
  private async guard<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (cause) {
      const { signal } = this.options;
      if (signal?.aborted) throw signal.reason;
      if (cause instanceof HubError) throw cause;
      throw this.fail("cannot be downloaded", { cause });
    }
  }
}
