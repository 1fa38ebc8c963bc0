import type { ToolSchema } from "@cria/core";
import type { DumpLine } from "@cria/records";

/** A conversation's data without its line: a row of the index next to the dump. */
export interface ConversationEntry {
  /** Number of its line in the dump, from 0; its id in addresses. */
  line: number;
  uid: string;
  sample: number;
  /** Null when it failed. */
  reward: number | null;
  success: boolean | null;
  advantage: number | null;
  finish: string;
  /** Sampled tokens, and all tokens. */
  sampled: number;
  tokens: number;
  turns: number;
  toolCalls: number;
  toolErrors: number;
  /** Largest difference between the sampler's and the trainer's probability of a token; null when the dump lacks it. */
  mismatch: number | null;
  failed: boolean;
  place: string | null;
  dataSource: string;
}

/** Conversations of one prompt in one dump. */
export interface GroupEntry {
  uid: string;
  /** Id of its prompt: `/prompts/:prompt`. */
  prompt: string;
  place: string | null;
  dataSource: string;
  /** First words of the question. */
  title: string;
  /** Mean and standard deviation of the rewards of those that did not fail; null where all did. */
  reward: number | null;
  spread: number | null;
  conversations: ConversationEntry[];
}

export type GroupSort = "order" | "reward" | "spread" | "advantage" | "length" | "errors" | "mismatch";

/**
 * `GET /api/runs/:run/dumps/:dump?filter=&search=&sort=&down=1&offset=&limit=`: groups with a selected conversation.
 * `filter` is the language of `cria show --filter`, `search` a text in the conversation. At most 200 groups at once.
 */
export interface GroupPage {
  groups: GroupEntry[];
  /** Lines (of the page's conversations) that filter and search select; null: all. */
  selected: number[] | null;
  matchedGroups: number;
  matched: number;
  total: number;
  /** Bytes in the index; less than `size` while it is built or the file grows. */
  indexed: number;
  size: number;
}

/** `GET /api/runs/:run/dumps/:dump/groups/:uid` */
export interface GroupDetail {
  group: GroupEntry;
  lines: DumpLine[];
  schemas: ToolSchema[];
}

/** `GET /api/runs/:run/dumps/:dump/episodes/:line` */
export interface EpisodeDetail {
  entry: ConversationEntry;
  group: GroupEntry;
  line: DumpLine;
  schemas: ToolSchema[];
  /** Line numbers of its neighbours in the file; null at its ends. */
  previous: number | null;
  next: number | null;
}
