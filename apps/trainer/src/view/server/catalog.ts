import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { RunSummary, ViewerEvent } from "@cria/viewer/api";
import { findRuns } from "../../runs/find-runs.js";
import { RunReader } from "../../runs/run-reader.js";

export interface CatalogOptions {
  /** Milliseconds between two checks of the folders while there are listeners; default 500. */
  everyMs?: number;
}

/** Milliseconds for which read data is valid. */
const FRESH_MS = 300;
/** Checks between two searches for new runs, and between two checks of runs that no process trains. */
const SELDOM = 4;

interface Known {
  reader: RunReader;
  at: number;
  stamp: string;
  /** Last reported state: the summary, live state, and dumps by id with their sizes. */
  said: { summary: string; live: string; rows: number; dumps: Map<string, number> } | null;
  reading: Promise<RunReader> | null;
}

/** The runs in some folders: searched again, read as they change, and reported to listeners. */
export class RunCatalog {
  private readonly known = new Map<string, Known>();
  private readonly listeners = new Set<(event: ViewerEvent) => void>();
  private searched = 0;
  private searching: Promise<void> | null = null;
  private timer: NodeJS.Timeout | null = null;
  private looks = 0;

  constructor(
    private readonly folders: readonly string[],
    private readonly options: CatalogOptions = {},
  ) {}

  /** Summaries of all runs, the newest first. */
  async list(): Promise<RunSummary[]> {
    await this.search(FRESH_MS);
    const readers = await Promise.all([...this.known.values()].map((known) => this.read(known)));
    return readers.map(({ summary }) => summary).sort((a, b) => (b.startedAt ?? 0) - (a.startedAt ?? 0));
  }

  /** The present state of a run by its id; null: there is none. */
  async find(id: string): Promise<RunReader | null> {
    if (!this.known.has(id)) await this.search(FRESH_MS);
    const known = this.known.get(id);
    if (!known) return null;
    if (await known.reader.exists()) return this.read(known);
    this.remove(id);
    return null;
  }

  /**
   * Reports changes from now on.
   * @returns a function that stops it.
   */
  listen(listener: (event: ViewerEvent) => void): () => void {
    this.listeners.add(listener);
    this.timer ??= setTimeout(() => void this.look(), 0);
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size === 0) this.close();
    };
  }

  tell(event: ViewerEvent): void {
    for (const listener of [...this.listeners]) listener(event);
  }

  /** Stops checking. */
  close(): void {
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
  }

  private async look(): Promise<void> {
    const isSearch = this.looks++ % SELDOM === 0;
    try {
      if (isSearch) await this.search(0);
      for (const [id, known] of this.known) {
        const isRunning = known.reader.summary.status === "running";
        if (!isRunning && !isSearch) continue;
        if (!(await known.reader.exists())) this.remove(id);
        else if (isRunning || known.stamp !== (await stampRun(known.reader.run.path))) await this.read(known, 0);
      }
    } finally {
      if (this.listeners.size > 0) this.timer = setTimeout(() => void this.look(), this.options.everyMs ?? 500);
    }
  }

  private search(fresh: number): Promise<void> {
    if (performance.now() - this.searched < fresh && this.searched > 0) return Promise.resolve();
    this.searching ??= this.searchNow().finally(() => {
      this.searching = null;
      this.searched = performance.now();
    });
    return this.searching;
  }

  private async searchNow(): Promise<void> {
    const found = await findRuns(this.folders);
    const paths = new Map(found.map((run) => [run.id, run.path]));
    for (const [id, { reader }] of this.known) if (paths.get(id) !== reader.run.path) this.remove(id);
    for (const run of found) {
      if (this.known.has(run.id)) continue;
      this.known.set(run.id, { reader: new RunReader(run), at: 0, stamp: "", said: null, reading: null });
    }
  }

  private remove(id: string): void {
    if (this.known.delete(id)) this.tell({ type: "removed", run: id });
  }

  private read(known: Known, fresh = FRESH_MS): Promise<RunReader> {
    if (known.at > 0 && performance.now() - known.at < fresh) return Promise.resolve(known.reader);
    known.reading ??= this.readNow(known).finally(() => {
      known.reading = null;
    });
    return known.reading;
  }

  private async readNow(known: Known): Promise<RunReader> {
    const { reader } = known;
    known.stamp = await stampRun(reader.run.path);
    const summary = await reader.refresh();
    known.at = performance.now();
    const now = {
      summary: JSON.stringify(summary),
      live: JSON.stringify(reader.live),
      rows: reader.metrics.rows.length,
      dumps: new Map(reader.dumps.map(({ id, size, modified }) => [id, size + modified])),
    };
    const { said } = known;
    known.said = now;
    const run = reader.run.id;
    if (now.summary !== said?.summary) this.tell({ type: "run", summary });
    if (said && now.rows !== said.rows) this.tell({ type: "metrics", run, step: summary.step });
    if (said && now.live !== said.live) this.tell({ type: "live", run, live: reader.live });
    for (const [id, mark] of said ? now.dumps : [])
      if (said!.dumps.get(id) !== mark) this.tell({ type: "dump", run, dump: id });
    return reader;
  }
}

/** Sizes and times of a run's files: equal while nothing changes. */
async function stampRun(path: string): Promise<string> {
  const names = ["", "metrics.jsonl", "config.json", "end.json", "live.json", "summary.json", "rollouts", "validation"];
  const files = [...names.map((name) => join(path, name)), `${resolve(path)}.run.lock`];
  const stamps = files.map(async (file) => {
    const found = await stat(file).catch(() => null);
    return found ? `${found.mtimeMs}:${found.size}` : "";
  });
  return (await Promise.all(stamps)).join();
}
