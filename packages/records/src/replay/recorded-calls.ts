import type { RecordedCall } from "@cria/episodes";
import { listCalls } from "@cria/episodes/internal";
import { restoreCall } from "../dump/describe-call.js";
import type { DumpLine } from "../dump/dump-line.js";

/** Recorded calls of an agent's dumped conversation; null: not an agent's, or the line lacks them. */
export function listLineCalls(line: DumpLine): RecordedCall[] | null {
  const turns = line.turns.map(({ call, ...turn }) => ({ ...turn, ...(call ? { call: restoreCall(call) } : {}) }));
  return listCalls({ tokenIds: line.token_ids, messages: line.messages, segments: line.segments, turns });
}
