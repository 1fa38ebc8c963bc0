export type Verdict = "ok" | "warning" | "problem";

/** One checked property. */
export interface Check {
  name: string;
  verdict: Verdict;
  /** The result, with its numbers. */
  found: string;
  /** The way to fix it; null when all is well. */
  remedy: string | null;
  /** The config key that it is about, if any. */
  key?: string;
}

export const ok = (name: string, found: string): Check => ({ name, verdict: "ok", found, remedy: null });

export const bad = (verdict: Verdict, name: string, found: string, remedy: string, key?: string): Check => ({
  name,
  verdict,
  found,
  remedy,
  ...(key === undefined ? {} : { key }),
});
