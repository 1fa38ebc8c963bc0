import { z } from "zod";
import type { BusTimes, JobBus, JobHandler, JobKind } from "../bus/job-bus.js";

/** Short enough for a test to wait for each. */
export const quickTimes: BusTimes = { ackWaitMs: 1_500, presenceMs: 1_500, leaseMs: 900 };

export const rollout: JobKind<{ row: number }, { answer: number }> = {
  name: "rollout",
  payload: z.object({ row: z.int() }),
  value: z.object({ answer: z.number() }),
};
export type Handler = JobHandler<{ row: number }, { answer: number }>;

/** Doubles a row. */
export const double: Handler["run"] = async ({ row }) => ({ value: { answer: 2 * row } });
/** Waits until its signal is aborted. */
export const hang: Handler["run"] = (_, { signal }) =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

export const join = (bus: JobBus, id: string, run: Handler["run"], slots = 1) =>
  bus.work({ id, class: "test", versions: { cria: "0.1.0" }, jobs: [{ kind: rollout, slots, run }] });
