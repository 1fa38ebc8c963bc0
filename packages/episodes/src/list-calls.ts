import type { ChatMessage, ToolSchema, TrajectorySegment, TurnCall, TurnRecord } from "@cria/core";

/** A call of an agent, as the record of its episode says it. */
export interface RecordedCall extends Pick<TurnCall, "sibling" | "last" | "request"> {
  /** Index of the call whose answer it goes on from, always a smaller one; -1: it begins a conversation. */
  parent: number;
  /** What others said since then. */
  messages: readonly ChatMessage[];
  /** Of the conversation. */
  tools: readonly ToolSchema[];
}

/** What is needed of a record. Its turns are in the order of their tokens. */
export interface CallRecord {
  tokenIds: ArrayLike<number>;
  messages: readonly ChatMessage[];
  segments?: readonly TrajectorySegment[];
  turns: readonly Pick<TurnRecord, "role" | "start" | "end" | "call">[];
}

/** Where a path of the record has come to. */
interface PathEnd {
  /** Index of its last call; -1: none. */
  call: number;
  /** What others said since; null: nothing. */
  heard: readonly ChatMessage[] | null;
  /** Index of the segment that the conversation begins with. */
  root: number;
}

/**
 * The calls of an agent's episode, in the order of their answers' tokens: what `layOutGraph` made of them, read back.
 * @returns null where the record does not say them, or contradicts itself.
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
      // Siblings answer what was said in the segment before theirs.
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
