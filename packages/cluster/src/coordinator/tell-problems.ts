import type { Report } from "@cria/trainer";
import type { JobBus } from "../bus/job-bus.js";

/** Problems of the bus: reported each time. */
const EACH = ["cluster/store-lost", "cluster/no-answer"];
/** Problems of its members, and of its size: each text is reported once. */
const ONCE = ["cluster/queue-full", "cluster/too-many-workers", "cluster/invalid-message", "cluster/protocol"];
const MOST_TEXTS = 100;

/** Reports problems of the bus to the training. */
export function tellProblems(
  bus: Pick<JobBus, "watchProblems">,
  report: Report | undefined,
  signal: AbortSignal,
): void {
  const told = new Set<string>();
  bus.watchProblems(({ code, message }) => {
    const isNew = ONCE.includes(code) && !told.has(message) && told.size < MOST_TEXTS;
    if (isNew) told.add(message);
    if (isNew || EACH.includes(code)) report?.({ type: "warning", text: message });
  }, signal);
}
