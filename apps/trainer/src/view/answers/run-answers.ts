import type { Context } from "hono";
import { makeMetricTable } from "../../runs/metrics-file.js";
import type { RunReader } from "../../runs/run-reader.js";
import { readNumber } from "../server/read-query.js";
import { Environments } from "./environment.js";

export type RunAnswer = (run: RunReader, c: Context) => unknown;

/** Answers of the API at `/api/runs/<run>/<name>`, as JSON. `--static` writes each of them once for a run. */
export function makeRunAnswers(): Record<string, RunAnswer> {
  const environments = new Environments();
  return {
    metrics: ({ metrics, heldOut }) => makeMetricTable(metrics.rows, heldOut),
    live: ({ live }) => live,
    environment: (run, c) => {
      const [from, to] = [readNumber(c, "from", 0), readNumber(c, "to", Number.MAX_SAFE_INTEGER)];
      return environments.describe(run, from, to, c.req.raw.signal);
    },
  };
}
