import type { DumpRef } from "../../api/index.js";

/** A word, quoted for a shell. */
function quote(word: string): string {
  return /^[\w./~:@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

const join = (words: readonly (string | number)[]) => words.map((word) => quote(String(word))).join(" ");

/** Chats with a run's policy. */
export const chatCommand = (path: string) => join(["cria", "chat", path]);

/**
 * Replays a conversation; null when it belongs to no step.
 * @param line of its dump, from 0.
 */
export function replayCommand(
  path: string,
  { kind, step }: Pick<DumpRef, "kind" | "step">,
  line: number,
): string | null {
  if (step === null || (kind !== "training" && kind !== "validation")) return null;
  const validation = kind === "validation" ? ["--validation"] : [];
  return join(["cria", "replay", path, ...validation, "--step", step, "--trajectory", line]);
}
