import { existsSync, readdirSync } from "node:fs";

/** Name of the earliest validation in a folder; null: there is none. */
export function findFirstValidation(folder: string): string | null {
  const names = existsSync(folder) ? readdirSync(folder) : [];
  const steps = names.filter((name) => /^\d+\.jsonl$/.test(name)).map((name) => Number.parseInt(name, 10));
  return steps.length > 0 ? `${Math.min(...steps)}.jsonl` : null;
}
