import { existsSync, readdirSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ConfigError, type ImageRecord, listImages } from "@cria/core";
import type { DumpLine } from "@cria/records";
import { nameImageFile } from "@cria/records/internal";
import type { EpisodeDetail, GroupPage, PromptEntry, RunDetail, RunSummary } from "@cria/viewer/api";
import { makeRunAnswers } from "./answers/run-answers.js";
import { IndexStore } from "./index/index-store.js";
import { listGroups } from "./index/list-groups.js";
import { type Asset, readAssets } from "./server/assets.js";
import { RunCatalog } from "./server/catalog.js";
import { createViewerApp } from "./server/create-app.js";

export interface StaticOptions {
  folders: readonly string[];
  /** The new folder. */
  out: string;
  /** Default: the built web app. */
  assets?: ReadonlyMap<string, Asset>;
  onProgress?: (done: number, total: number) => void;
  signal?: AbortSignal;
}

const LONGEST_NAME = 240;

/** Tells the app that it has files instead of a server. */
const MARK = '<meta name="cria-static" content="">';

/**
 * Writes the viewer as a folder of files that any web server can serve: the app, and each answer of the API as
 * `data/<address>.json`, with each segment encoded. Lists have all their groups; pictures are copied.
 * @returns the number of data files.
 * @throws ConfigError when the folder is not empty; the signal's reason.
 */
export async function writeStatic(options: StaticOptions): Promise<number> {
  const { folders, out, assets = readAssets(), onProgress, signal } = options;
  if (existsSync(out) && readdirSync(out).length > 0) {
    throw new ConfigError("is not empty", {
      code: "config/bad-argument",
      subject: `--static ${out}`,
      expected: "a folder that does not exist yet, or is empty",
      received: "a folder with files in it",
      remedy: "choose another folder",
    });
  }
  for (const [name, { content }] of assets)
    await write(join(out, name), name === "index.html" ? markStatic(content) : content);

  const catalog = new RunCatalog(folders);
  const { app } = createViewerApp({ catalog, assets, host: "127.0.0.1", token: null });
  const store = new IndexStore();
  let done = 0;
  let total = 1;
  const save = async (path: readonly string[], content: string) => {
    signal?.throwIfAborted();
    const names = path.map(nameFile);
    // No file system can store it, and the app does not request it.
    if (names.every((name) => name.length <= LONGEST_NAME)) await write(`${join(out, "data", ...names)}.json`, content);
    onProgress?.(++done, total);
  };
  const ask = (path: readonly string[]) =>
    app.request(`/api/${path.map(encodeURIComponent).join("/")}`, { headers: { host: "127.0.0.1" } });
  /** Requests data as the app does, and writes the answer. */
  const keep = async <T>(...path: string[]): Promise<T> => {
    const text = await (await ask(path)).text();
    await save(path, text);
    return JSON.parse(text) as T;
  };
  const kept = new Set<string>();
  /** The pictures of a conversation, each once for its run. */
  const keepImages = async (run: string, { line }: EpisodeDetail) => {
    for (const image of listLineImages(line)) {
      const path = ["runs", run, ...nameImageFile(image).split(/[\\/]/)];
      const address = path.join("/");
      if (kept.has(address)) continue;
      kept.add(address);
      signal?.throwIfAborted();
      const response = await ask(path);
      // A picture that the run has lost is missing here too.
      if (response.ok)
        await write(join(out, "data", ...path.map(nameFile)), new Uint8Array(await response.arrayBuffer()));
    }
  };

  const runs = await keep<RunSummary[]>("runs");
  const names = Object.keys(makeRunAnswers());
  total += (2 + names.length) * runs.length;
  for (const { id } of runs) {
    const { dumps } = await keep<RunDetail>("runs", id);
    for (const name of names) await keep("runs", id, name);
    const prompts = await keep<PromptEntry[]>("runs", id, "prompts");
    total += prompts.length + dumps.length;
    for (const prompt of prompts) await keep("runs", id, "prompts", prompt.id);
    const reader = await catalog.find(id);
    for (const { id: dump, file } of reader?.dumps ?? []) {
      const index = store.get(file);
      await index.update();
      const order = { filter: "", search: "", sort: "order", down: false } as const;
      const page: GroupPage = await listGroups(index, { ...order, offset: 0, limit: null });
      total += page.groups.length + page.total;
      await save(["runs", id, "dumps", dump], JSON.stringify(page));
      for (const { uid, conversations } of page.groups) {
        await keep("runs", id, "dumps", dump, "groups", uid);
        for (const { line } of conversations)
          await keepImages(id, await keep<EpisodeDetail>("runs", id, "dumps", dump, "episodes", String(line)));
      }
    }
  }
  return done;
}

/** The images that a conversation shows, in all of its branches. */
function listLineImages({ messages, segments = [] }: DumpLine): ImageRecord[] {
  const all = [messages, ...segments.map((segment) => segment.messages)].flat();
  return all.flatMap(({ content }) => listImages(content)).flatMap(({ image }) => ("hash" in image ? image : []));
}

/** A segment of an address, never that of the folder above. */
function nameFile(segment: string): string {
  return encodeURIComponent(segment).replace(/^\.+$/, (dots) => "%2E".repeat(dots.length));
}

function markStatic(html: Uint8Array): string {
  return new TextDecoder().decode(html).replace(/<head[^>]*>/i, (head) => `${head}${MARK}`);
}

async function write(file: string, content: string | Uint8Array): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, content);
}
