import { readdir, readFile } from "node:fs/promises";
import { basename, extname, join, relative, resolve } from "node:path";
import { ToolError } from "@cria/core";
import type MiniSearch from "minisearch";
import type { Passage, Retriever } from "./passage.js";
import { splitText } from "./split-text.js";

export interface LocalRetrieverOptions {
  /** Files with these endings are read; default .txt, .md and .jsonl. */
  extensions?: readonly string[];
  /** Longest passage in characters; default 800. */
  maxChars?: number;
}

interface Entry {
  id: number;
  title: string;
  text: string;
}

/**
 * Searches the text files of a folder with BM25, through MiniSearch. The index is made at the first search and held in
 * memory; all trajectories share it. In `.jsonl` files each line is a passage, `{ "title"?, "contents" | "text" }`.
 */
export class LocalRetriever implements Retriever {
  private index: Promise<MiniSearch<Entry>> | null = null;
  private readonly folder: string;

  constructor(
    folder: string,
    private readonly options: LocalRetrieverOptions = {},
  ) {
    this.folder = resolve(folder);
  }

  /** @throws ToolError when the folder cannot be read or holds no text. */
  async search(queries: readonly string[], topK: number): Promise<Passage[][]> {
    this.index ??= this.build().catch((error) => {
      this.index = null;
      throw error;
    });
    const index = await this.index;
    return queries.map((query) =>
      index
        .search(query, { prefix: (term) => term.length > 3, boost: { title: 2 } })
        .slice(0, topK)
        .map((hit) => ({ title: hit.title as string, text: hit.text as string, score: hit.score })),
    );
  }

  private async build(): Promise<MiniSearch<Entry>> {
    const { default: MiniSearchIndex } = await import("minisearch");
    const index = new MiniSearchIndex<Entry>({ fields: ["title", "text"], storeFields: ["title", "text"] });
    let id = 0;
    for (const file of await this.listFiles()) {
      for (const passage of this.readPassages(file, await readFile(file, "utf8"))) index.add({ id: id++, ...passage });
    }
    if (id > 0) return index;
    throw new ToolError("holds no text to search", {
      code: "tool/bad-config",
      subject: `folder ${this.folder}`,
      expected: `files that end with ${this.extensions.join(", ")}`,
    });
  }

  private get extensions(): readonly string[] {
    return this.options.extensions ?? [".txt", ".md", ".jsonl"];
  }

  /** Files in the order of their names, so that equal scores always rank alike. */
  private async listFiles(): Promise<string[]> {
    try {
      const entries = await readdir(this.folder, { recursive: true, withFileTypes: true });
      const files = entries.filter((entry) => entry.isFile() && this.extensions.includes(extname(entry.name)));
      return files.map((entry) => join(entry.parentPath, entry.name)).sort();
    } catch (cause) {
      throw new ToolError("cannot be read", {
        code: "tool/bad-config",
        subject: `folder ${this.folder}`,
        received: (cause as Error).message,
        cause,
      });
    }
  }

  private readPassages(file: string, content: string): Omit<Entry, "id">[] {
    const path = relative(this.folder, file);
    if (extname(file) === ".jsonl") return content.split("\n").flatMap((line) => readJsonLine(line, path));
    const heading = /^#\s+(.+)$/m.exec(content.slice(0, 2000))?.[1]?.trim();
    const title = heading ?? basename(path, extname(path));
    return splitText(content, this.options.maxChars ?? 800).map((text) => ({ title, text }));
  }
}

/** A line of a corpus; the first line of `contents` is its title, as in the corpora of Search-R1. */
function readJsonLine(line: string, path: string): Omit<Entry, "id">[] {
  if (line.trim() === "") return [];
  try {
    const row = JSON.parse(line) as { title?: unknown; text?: unknown; contents?: unknown };
    const whole = String(row.contents ?? row.text ?? "");
    if (typeof row.title === "string") return [{ title: row.title, text: whole }];
    const [title = "", ...rest] = whole.split("\n");
    return rest.length > 0
      ? [{ title: title.replace(/^"|"$/g, ""), text: rest.join("\n") }]
      : [{ title: path, text: whole }];
  } catch {
    // One broken line must not make a large corpus unusable.
    return [];
  }
}
