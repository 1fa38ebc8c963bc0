import type { ChatMessage, ToolSchema, TrajectorySegment, TurnCall, TurnRecord } from "@cria/core";

/** A recorded call of an agent. */
export interface RecordedCall extends Pick<TurnCall, "sibling" | "last" | "request"> {
  /** Index of the call whose answer it continues, always smaller than its own; -1: it begins a conversation. */
  parent: number;
  /** Messages since that answer. */
  messages: readonly ChatMessage[];
  /** Tools of the conversation. */
  tools: readonly ToolSchema[];
}

/** Fields of a record that are needed. Turns are in token order. */
export interface CallRecord {
  tokenIds: ArrayLike<number>;
  messages: readonly ChatMessage[];
  segments?: readonly TrajectorySegment[];
  turns: readonly Pick<TurnRecord, "role" | "start" | "end" | "call">[];
}

/** End of a path through the record. */
interface PathEnd {
  /** Index of the path's last call; -1: none. */
  call: number;
  /** Messages since that call; null: none. */
  heard: readonly ChatMessage[] | null;
  /** Index of the conversation's first segment. */
  root: number;
}

/**
 * Reads the calls of an agent's episode back from the output of `layOutGraph`, in the token order of their answers.
 * @returns null if the record lacks them, or contradicts itself.
 */
export function listCalls({ tokenIds, messages, segments, turns }: CallRecord): RecordedCall[] | null {
  const parts = segments ?? [{ start: 0, end: tokenIds.length, parent: -1, messages: [...messages] }];
  const answers = turns.filter(({ role }) => role === "assistant");
  const calls: RecordedCall[] = [];
  const ends: PathEnd[] = [];
  const tools = new Map<number, readonly ToolSchema[]>();
  let next = 0;
  for (const [index, { start, end, parent, messages: said }] of parts.entries()) {
    let { call, heard, root } = ends[parent] ?? { call: -1, heard: null, root: index };
    let at = 0;
    for (; next < answers.length && answers[next]!.start < end; next++) {
      const answer = answers[next]!;
      if (!answer.call || answer.start < start || answer.end <= answer.start) return null;
      const { messages: count, tools: own, ...asked } = answer.call;
      // Siblings reply to the messages of the segment before theirs.
      const isFirst = answer.start === start && heard !== null;
      if (!isFirst) {
        if (heard !== null) return null;
        heard = said.slice(at, at + count);
        at += count;
      }
      if (heard!.length !== count || count < 1 || said[at++]?.role !== "assistant") return null;
      if (!tools.has(root)) tools.set(root, own ?? []);
      call = calls.push({ parent: call, messages: heard!, tools: tools.get(root)!, ...asked }) - 1;
      heard = null;
    }
    if (at < said.length) {
      if (heard !== null) return null;
      heard = said.slice(at);
    }
    ends.push({ call, heard, root });
  }
  const followed = new Set(parts.map(({ parent }) => parent));
  const isAnswered = ends.every(({ heard }, index) => heard === null || followed.has(index));
  return isAnswered && next === answers.length && calls.length > 0 ? calls : null;
}
