import { randomBytes } from "node:crypto";

/** A word that nobody can guess and that templates print as it is. */
export function makeMark(): string {
  return randomBytes(12).toString("hex");
}
