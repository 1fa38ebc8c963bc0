import { CriaError } from "@cria/core";
import type { Check } from "../doctor/check.js";

/**
 * "not supported": Cria cannot do it with this file. "not checked": the result is unknown, and the remedy names the way
 * to find out.
 */
export type Verdict = "ok" | "falls short" | "not supported" | "not checked";

/** A row of the table: the checked property and the result. */
export interface Finding extends Omit<Check, "verdict" | "key"> {
  verdict: Verdict;
}

export const fine = (name: string, found: string): Finding => ({ name, verdict: "ok", found, remedy: null });

export const other = (verdict: Exclude<Verdict, "ok">, name: string, found: string, remedy: string): Finding => ({
  name,
  verdict,
  found,
  remedy,
});

/** "ok" where `isFine`, else "falls short". */
export const judge = (name: string, isFine: boolean, found: string, remedy: string): Finding =>
  isFine ? fine(name, found) : other("falls short", name, found, remedy);

/** The engine's messages about files that it can read but not train. */
const UNSUPPORTED = [
  "engine/not-trainable",
  "engine/unsupported-architecture",
  "engine/unsupported-operation",
  "engine/unsupported-tensor",
  "engine/unsupported-type",
];

/** The row of a check that threw, with the error's first line. */
export function describeError(name: string, error: unknown, remedy = "see the message"): Finding {
  if (!(error instanceof CriaError))
    return other("falls short", name, String((error as Error)?.stack ?? error), remedy);
  const [summary = "", ...details] = error.message.split("\n").map((line) => line.trim());
  const found = [summary, ...details.filter((line) => /^(expected|received): /.test(line))].join(", ");
  const isUnsupported = UNSUPPORTED.includes(error.code);
  return other(isUnsupported ? "not supported" : "falls short", name, found, error.remedy ?? remedy);
}
