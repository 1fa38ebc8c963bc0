import type { LiveState } from "@cria/records";
import type { RunSummary } from "./runs.js";

/**
 * `GET /api/events`: server-sent events, each one of these as JSON. After a pause in the connection the app requests
 * everything again.
 */
export type ViewerEvent =
  | { type: "run"; summary: RunSummary }
  | { type: "removed"; run: string }
  /** Lines of metrics were added (or, after a resume, cut). */
  | { type: "metrics"; run: string; step: number }
  | { type: "dump"; run: string; dump: string }
  | { type: "live"; run: string; live: LiveState | null };

/** The answer of every address to a failed request, with a status of 4xx or 5xx. */
export interface ApiError {
  error: { message: string; remedy: string | null; needs?: "confirm" };
}
