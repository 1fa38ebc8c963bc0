import type { ToolSchema } from "@cria/core";
import { type DumpLine, type Filter, readDump } from "@cria/records";
import type { DumpFile } from "./find-dumps.js";

export interface SelectOptions {
  /** Selects conversations; null: all. */
  filter: Filter | null;
  /** Only conversations of this prompt. */
  uid?: string;
  /** Most conversations to return. */
  limit: number;
  /** The lowest rewards first, instead of the order of the file. */
  worst: boolean;
}

/** A conversation, and the rewards of its group. */
export interface SelectedConversation {
  line: DumpLine;
  /** The file that it is from. */
  file: string;
  /** Rewards of its prompt's conversations, by sample; null for those that failed. */
  group: { sample: number; reward: number | null }[];
  /** Schemas of its tools, if its dump has them. */
  schemas: ToolSchema[];
}

export interface Selection {
  conversations: SelectedConversation[];
  /** Conversations that pass the filter. */
  matched: number;
  /** All conversations of the files. */
  total: number;
  failed: number;
  /** Mean reward of those that did not fail; null when all did. */
  reward: number | null;
  /** Share of successes among the judged ones; null without any. */
  success: number | null;
}

/** Reads dumps once, from front to back, and keeps only the requested conversations. */
export async function selectConversations(files: readonly DumpFile[], options: SelectOptions): Promise<Selection> {
  const { filter, uid, limit, worst } = options;
  const kept: { line: DumpLine; file: string }[] = [];
  const groups = new Map<string, SelectedConversation["group"]>();
  const schemas = new Map<string, ToolSchema>();
  const counts = { total: 0, failed: 0, matched: 0, rewards: 0, judged: 0, successes: 0 };
  for (const { file } of files) {
    for await (const line of readDump(file)) {
      counts.total++;
      if (line.reward === null) counts.failed++;
      else counts.rewards += line.reward;
      if (line.success !== null) counts.judged++;
      if (line.success) counts.successes++;
      for (const schema of line.tool_schemas) schemas.set(nameIn(file, schema.function.name), schema);
      const group = groups.get(nameIn(file, line.uid)) ?? [];
      group.push({ sample: line.sample, reward: line.reward });
      groups.set(nameIn(file, line.uid), group);
      if ((uid !== undefined && line.uid !== uid) || (filter && !filter(line))) continue;
      counts.matched++;
      if (!worst && kept.length >= limit) continue;
      kept.push({ line, file });
      if (!worst) continue;
      kept.sort((a, b) => compare(rank(a.line), rank(b.line)));
      kept.length = Math.min(kept.length, limit);
    }
  }
  const ended = counts.total - counts.failed;
  return {
    conversations: kept.map(({ line, file }) => ({
      line,
      file,
      group: groups.get(nameIn(file, line.uid))!.sort((a, b) => a.sample - b.sample),
      schemas: line.tools.flatMap((name) => schemas.get(nameIn(file, name)) ?? []),
    })),
    matched: counts.matched,
    total: counts.total,
    failed: counts.failed,
    reward: ended > 0 ? counts.rewards / ended : null,
    success: counts.judged > 0 ? counts.successes / counts.judged : null,
  };
}

/** Prompts come again in later epochs: a group is of one file. */
function nameIn(file: string, name: string): string {
  return `${file}\0${name}`;
}

/** Failed conversations are not ranked: the policy did not cause that. */
function rank({ reward }: DumpLine): number {
  return reward ?? Number.POSITIVE_INFINITY;
}

function compare(a: number, b: number): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
