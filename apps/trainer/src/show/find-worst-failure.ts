import { findLastAnswer } from "@cria/core";
import { type DumpLine, readDump } from "@cria/records";
import { makePrintableLine } from "../terminal/printable-text.js";
import { findDumps } from "./find-dumps.js";

/** A conversation that went wrong. Its texts cannot control a terminal. */
export interface WorstFailure {
  step: number;
  /** Its index among the conversations of the step, from 0. */
  index: number;
  /** Its name, its reward, and its end. */
  who: string;
  /** Its last words, in one line. */
  said: string;
}

/**
 * The unsuccessful conversation of a step with the lowest reward; of equal ones the longest, which shows most. Null
 * when there is none, or nothing can be read.
 */
export async function findWorstFailure(path: string, step: number): Promise<WorstFailure | null> {
  try {
    let worst: { line: DumpLine; index: number } | null = null;
    let index = 0;
    for (const { file } of findDumps(path, { step }))
      for await (const line of readDump(file)) {
        if (line.reward !== null && line.success !== true && (worst === null || isWorse(line, worst.line)))
          worst = { line, index };
        index++;
      }
    return worst && { step, index: worst.index, ...describe(worst.line) };
  } catch {
    // An error in this report must not fail the training.
    return null;
  }
}

function isWorse(a: DumpLine, b: DumpLine): boolean {
  return a.reward! < b.reward! || (a.reward === b.reward && a.token_ids.length > b.token_ids.length);
}

function describe({
  uid,
  sample,
  reward,
  finish_reason,
  turns,
  messages,
  prompt_messages,
}: DumpLine): Pick<WorstFailure, "who" | "said"> {
  const failures = turns.flatMap((turn) => turn.failures ?? []).flatMap((failure) => failure ?? []);
  const end = { length: "no token was left", tool_calls: "no turn was left" }[finish_reason as string];
  const facts = [...(end ? [end] : []), ...new Set(failures)].join(", ");
  const last = findLastAnswer(messages.slice(prompt_messages));
  return {
    who: makePrintableLine(`${uid} #${sample}, reward ${reward}${facts ? ` (${facts})` : ""}`),
    said: makePrintableLine(last.trim()),
  };
}
