import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadModel } from "@cria/engine";
import { describeError, type Finding } from "./finding.js";
import type { CheckContext, CheckJob, ModelCheck } from "./model-check.js";

/** Events of a running check. */
export interface CheckEvents {
  begin(row: string): void;
  advance(share: number): void;
}

/** Runs a check, in this process or in a separate one. */
export type RunCheck = (
  check: ModelCheck,
  job: CheckJob,
  events: CheckEvents,
  signal?: AbortSignal,
) => Promise<Finding[]>;

/** Runs a check here; an exception gives a row too. */
export const runHere: RunCheck = async (check, job, events) => {
  let row = check.name;
  const folder = mkdtempSync(join(tmpdir(), "cria-check-"));
  const { path, device, threads } = job;
  const context: CheckContext = {
    ...job,
    folder,
    load: (options) => loadModel({ path, device, threads, ...options }),
    begin(name) {
      row = name;
      events.begin(name);
    },
    advance: events.advance,
  };
  try {
    return await check.run(context);
  } catch (error) {
    return [describeError(row, error)];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};
