import type { DumpRef } from "../../api/index.js";

/** A word as a shell takes it. */
function quote(word: string): string {
  return /^[\w./~:@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

const join = (words: readonly (string | number)[]) => words.map((word) => quote(String(word))).join(" ");

/** Talks to what a run trained. */
export const chatCommand = (path: string) => join(["cria", "chat", path]);

/** Holds a conversation again; null where it belongs to no step. @param line of its dump, from 0. */
export function replayCommand(
  path: string,
  { kind, step }: Pick<DumpRef, "kind" | "step">,
  line: number,
): string | null {
  if (step === null || (kind !== "training" && kind !== "validation")) return null;
  const validation = kind === "validation" ? ["--validation"] : [];
  return join(["cria", "replay", path, ...validation, "--step", step, "--trajectory", line]);
}
