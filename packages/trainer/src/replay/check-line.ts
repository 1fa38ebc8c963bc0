import type { DumpLine } from "@cria/records";
import { listLineCalls, restoreRow } from "@cria/records/internal";
import type { AgentLoopEntry, DatasetRow } from "@cria/rollout";
import { refuseReplay } from "./check-run.js";

/** Name of a conversation in errors. */
export function nameLine({ uid, sample, step }: DumpLine): string {
  return `sample ${sample} of ${uid}${step === null ? "" : `, step ${step}`}`;
}

/**
 * @param loop the agent loop that held it, and the recorded inputs of its conversations.
 * @throws ConfigError if a dump lacks data for a replay, or a loop outside of Cria held the conversation.
 */
export function checkLineReplays(
  line: DumpLine,
  { name, recorded }: { name: string; recorded: AgentLoopEntry["recorded"] },
): void {
  const subject = nameLine(line);
  if (recorded === undefined || (recorded === "answers" && line.segments)) {
    throw refuseReplay("own-loop", "was held by a loop of its own", {
      subject,
      expected: "a conversation of tool_agent, single_turn_agent or an agent",
      received: `${name}: what its code said and did between the turns of the policy was not recorded`,
      remedy: "run it again",
    });
  }
  if (line.error !== null || line.finish_reason === "aborted") {
    throw refuseReplay("failed", "failed, and has no end to come to", {
      subject,
      expected: "a conversation that came to its end",
      received: line.error ?? "it was aborted",
    });
  }
  const missing = listMissing(line);
  if (missing.length === 0 && recorded === "calls" && !listLineCalls(line)) missing.push("turns[].call");
  if (missing.length > 0) {
    throw refuseReplay("not-recorded", "lacks what a replay needs", {
      subject,
      expected: `step, token ids, a logprob for each, and turns${recorded === "calls" ? " with their calls" : ""}`,
      received: `none of ${missing.join(", ")}`,
      remedy: "train again with this version, or replay a conversation of a later step",
    });
  }
}

function listMissing({ step, token_ids, rollout_logprobs, turns }: DumpLine): string[] {
  return [
    ...(step === null ? ["step"] : []),
    ...(token_ids.length === 0 ? ["token_ids"] : []),
    ...(rollout_logprobs.length !== token_ids.length ? ["rollout_logprobs"] : []),
    ...(turns.length === 0 ? ["turns"] : []),
  ];
}

/** @throws ConfigError for a conversation of an agent: only the agent knows its next request. */
export function checkGoesOn(line: DumpLine): void {
  if (!listLineCalls(line)) return;
  throw refuseReplay("own-loop", "does not go on without its agent", {
    subject: nameLine(line),
    expected: "a conversation of tool_agent or single_turn_agent",
    received: "one of an agent: what it would ask next was not recorded",
    remedy: "cria replay without --edit holds what was recorded again",
  });
}

/** @throws ConfigError if the row is missing from the data, but its tools or interaction may depend on it. */
export function findRow(
  line: DumpLine,
  rows: ReadonlyMap<string, DatasetRow>,
  isOfRow: (row: DatasetRow) => boolean,
): DatasetRow {
  const row = rows.get(line.uid);
  if (row && isOfRow(row)) return row;
  if (line.tools.length === 0 && line.turns.every(({ role }) => role === "assistant")) return restoreRow(line);
  throw refuseReplay("no-row", "is of a row that the data no longer has", {
    subject: nameLine(line),
    expected: `row ${line.place ?? line.uid}`,
    received: row ? "a row of that name with another question or answer" : "no such row",
    remedy: "put the data back; a run that a program trained is opened by it: openReplay(folder, { train: options })",
  });
}
