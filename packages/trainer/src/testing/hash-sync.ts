import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

/** The SHA-256 of a file, by which tests compare the weights of runs. */
export const hashSync = (file: string) => createHash("sha256").update(readFileSync(file)).digest("hex");
