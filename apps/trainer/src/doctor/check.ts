export type Verdict = "ok" | "warning" | "problem";

/** One thing that was looked at. */
export interface Check {
  name: string;
  verdict: Verdict;
  /** What was found, with its numbers. */
  found: string;
  /** What to do about it; null when all is well. */
  remedy: string | null;
  /** The config key that it is about, where there is one. */
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
