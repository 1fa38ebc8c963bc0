import { randomBytes } from "node:crypto";

/** A word that cannot be guessed and that templates print unchanged. */
export function makeMark(): string {
  return randomBytes(12).toString("hex");
}
