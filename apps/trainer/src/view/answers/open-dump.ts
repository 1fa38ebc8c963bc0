import { RequestError } from "@cria/serve/internal";
import type { EpisodeDetail, GroupDetail, GroupPage } from "@cria/viewer/api";
import type { DumpFile } from "../../runs/list-dumps.js";
import type { RunReader } from "../../runs/run-reader.js";
import type { DumpIndex } from "../index/dump-index.js";
import { type IndexRow, toEntry } from "../index/index-row.js";
import type { IndexStore } from "../index/index-store.js";
import { groupRows, listGroups, type PageOptions, toGroupEntry } from "../index/list-groups.js";

/** Milliseconds that a list waits for its index; then the part so far is answered, and the rest follows. */
const PATIENCE_MS = 150;
/** Most conversations of a group, and their bytes, in a full answer. */
const MOST_LINES = 64;
const MOST_BYTES = 64 << 20;

/** @throws RequestError 404 for an id that none of the run's dumps has. */
export function findDump(reader: RunReader, id: string): DumpFile {
  const dump = reader.dumps.find((each) => each.id === id);
  if (!dump) throw refuseUnknown(`dump ${id}`, "a dump of the run, as GET /api/runs/:run lists them");
  return dump;
}

/** A page of groups; while the index is being built, of the part so far. */
export async function answerPage(
  store: IndexStore,
  dump: DumpFile,
  options: PageOptions,
  onIndexed: () => void,
): Promise<GroupPage> {
  const index = store.get(dump.file);
  const work = index.update();
  const isDone = await Promise.race([work.then(() => true), wait(PATIENCE_MS)]);
  // A failure without a waiting caller goes to the next caller.
  if (!isDone) void work.then(onIndexed, () => undefined);
  return listGroups(index, options);
}

/** @throws RequestError 404 where no conversation has the uid. */
export async function answerGroup(store: IndexStore, dump: DumpFile, uid: string): Promise<GroupDetail> {
  const index = await open(store, dump);
  const group = groupRows(index).get(uid);
  if (!group) throw refuseUnknown(`group ${uid}`, "the uid of a prompt in this dump");
  const rows = takeBytes(group.rows.slice(0, MOST_LINES), MOST_BYTES);
  const lines = await index.read(rows);
  const names = new Set(lines.flatMap(({ tools }) => tools));
  return { group: toGroupEntry(group), lines, schemas: await index.readSchemas([...names]) };
}

/** @throws RequestError 404 where there is no such line. */
export async function answerEpisode(store: IndexStore, dump: DumpFile, line: number): Promise<EpisodeDetail> {
  const index = await open(store, dump);
  const row = index.find(line);
  if (!row) throw refuseUnknown(`conversation ${line}`, "the number of a line with a conversation, from 0");
  const [read] = await index.read([row]);
  return {
    entry: toEntry(row),
    group: toGroupEntry(groupRows(index).get(row.uid)!),
    line: read!,
    schemas: await index.readSchemas(read!.tools),
    ...index.neighbours(line),
  };
}

/** The first rows whose lines have at most `most` bytes together; at least one. */
function takeBytes(rows: readonly IndexRow[], most: number): IndexRow[] {
  let bytes = 0;
  const end = rows.findIndex(({ length }, i) => {
    bytes += length;
    return bytes > most && i > 0;
  });
  return rows.slice(0, end < 0 ? rows.length : end);
}

/** The whole index. */
async function open(store: IndexStore, dump: DumpFile): Promise<DumpIndex> {
  const index = store.get(dump.file);
  await index.update();
  return index;
}

export function refuseUnknown(subject: string, expected: string): RequestError {
  return new RequestError(404, "is not known", { code: "view/unknown", subject: subject.slice(0, 200), expected });
}

function wait(milliseconds: number): Promise<false> {
  return new Promise((resolve) => {
    setTimeout(() => resolve(false), milliseconds);
  });
}
