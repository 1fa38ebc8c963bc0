import { listCalls, type RecordedCall } from "@cria/episodes";
import { restoreCall } from "../dump/describe-call.js";
import type { DumpLine } from "../dump/dump-line.js";

/** The calls of a dumped conversation of an agent; null: it is none, or its line does not say them. */
export function listLineCalls(line: DumpLine): RecordedCall[] | null {
  const turns = line.turns.map(({ call, ...turn }) => ({ ...turn, ...(call ? { call: restoreCall(call) } : {}) }));
  return listCalls({ tokenIds: line.token_ids, messages: line.messages, segments: line.segments, turns });
}
