import { findLastAnswer } from "@cria/core";
import { type DumpLine, readDump } from "@cria/records";
import { makePrintableLine } from "../terminal/printable-text.js";
import { findDumps } from "./find-dumps.js";

/** A conversation that went wrong. Nothing in its texts acts on a terminal. */
export interface WorstFailure {
  step: number;
  /** Its place among the conversations of the step, from 0. */
  index: number;
  /** Its name, its reward, and how it ended. */
  who: string;
  /** Its last words, in one line. */
  said: string;
}

/**
 * The conversation of a step with the lowest reward, of those that did not succeed; the longest of several, which has the most to
 * say. Null where there is none, or nothing can be read.
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
    // What ends a training must not fail because of what it tells.
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
