import type { PromptDetail, PromptEntry } from "@cria/viewer/api";
import type { DumpFile } from "../../runs/list-dumps.js";
import type { RunReader } from "../../runs/run-reader.js";
import type { DumpIndex } from "../index/dump-index.js";
import type { IndexRow } from "../index/index-row.js";
import type { IndexStore } from "../index/index-store.js";
import { makePromptId } from "../index/prompt-id.js";
import { refuseUnknown } from "./open-dump.js";

/** Prompts of a list. */
const MOST = 1000;

interface Prompt {
  entry: PromptEntry;
  appearances: { dump: DumpFile; rows: IndexRow[] }[];
}

/** Prompts of a dump by their ids, as long as its index stays unchanged. */
const kept = new WeakMap<DumpIndex, { version: number; prompts: Map<string, IndexRow[]> }>();

/**
 * The prompts of a run; those that most dumps contain come first.
 * @throws the signal's reason
 */
export async function listPrompts(
  store: IndexStore,
  reader: RunReader,
  search: string,
  signal?: AbortSignal,
): Promise<PromptEntry[]> {
  const text = search.trim().toLowerCase();
  const prompts = await collectPrompts(store, reader, signal);
  return [...prompts.values()]
    .map(({ entry }) => entry)
    .filter(({ title, place, dataSource }) => `${title}\n${place ?? ""}\n${dataSource}`.toLowerCase().includes(text))
    .sort((a, b) => b.times - a.times)
    .slice(0, MOST);
}

/**
 * The places of a prompt.
 * @throws RequestError 404 for an unknown id
 */
export async function findPrompt(
  store: IndexStore,
  reader: RunReader,
  id: string,
  signal?: AbortSignal,
): Promise<PromptDetail> {
  const found = (await collectPrompts(store, reader, signal)).get(id);
  if (!found) throw refuseUnknown(`prompt ${id}`, "the id of a prompt, as GET /api/runs/:run/prompts lists them");
  return {
    prompt: found.entry,
    appearances: found.appearances.map(({ dump, rows }) => ({
      dump: dump.id,
      step: dump.step,
      validation: dump.kind === "validation" || dump.kind === "asked",
      conversations: rows.map(({ line, sample, reward, success }) => ({ line, sample, reward, success })),
    })),
  };
}

async function collectPrompts(
  store: IndexStore,
  reader: RunReader,
  signal?: AbortSignal,
): Promise<Map<string, Prompt>> {
  const prompts = new Map<string, Prompt>();
  for (const dump of reader.dumps) {
    signal?.throwIfAborted();
    const index = store.get(dump.file);
    // A removed dump has no prompts.
    await index.update().catch(() => undefined);
    for (const [id, rows] of groupByPrompt(index)) {
      const [{ title, place, dataSource }] = rows as [IndexRow, ...IndexRow[]];
      const prompt = prompts.get(id) ?? { entry: { id, title, place, dataSource, times: 0 }, appearances: [] };
      prompts.set(id, prompt);
      prompt.entry.times++;
      prompt.appearances.push({ dump, rows });
    }
  }
  return prompts;
}

function groupByPrompt(index: DumpIndex): Map<string, IndexRow[]> {
  const known = kept.get(index);
  if (known?.version === index.version) return known.prompts;
  const ids = new Map<string, string>();
  const prompts = new Map<string, IndexRow[]>();
  for (const row of index.rows) {
    const name = JSON.stringify([row.uid, row.place, row.dataSource]);
    const id = ids.get(name) ?? makePromptId(row);
    ids.set(name, id);
    const rows = prompts.get(id);
    if (rows) rows.push(row);
    else prompts.set(id, [row]);
  }
  kept.set(index, { version: index.version, prompts });
  return prompts;
}
