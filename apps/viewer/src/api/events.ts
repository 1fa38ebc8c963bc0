import type { LiveState, RunSummary } from "./runs.js";

/** `GET /api/events`: server-sent events, each one of these as JSON. After a pause in the connection all is asked again. */
export type ViewerEvent =
  | { type: "run"; summary: RunSummary }
  | { type: "removed"; run: string }
  /** Lines of metrics were added (or, after a resume, cut). */
  | { type: "metrics"; run: string; step: number }
  | { type: "dump"; run: string; dump: string }
  | { type: "live"; run: string; live: LiveState | null };

/** What every address answers when it cannot do what it was asked, with a status of 4xx or 5xx. */
export interface ApiError {
  error: { message: string; remedy: string | null; needs?: "confirm" };
}
