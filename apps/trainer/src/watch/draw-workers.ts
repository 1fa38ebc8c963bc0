import type { ClusterView, WorkerState, WorkerView } from "@cria/viewer/api";
import { colors as pc } from "../terminal/colors.js";
import { makePrintableLine } from "../terminal/printable-text.js";

/** Workers that are named; the others are counted. */
const NAMED = 3;

/**
 * A training's workers: their number, the distribution of work, failures; and a line for each one that is shut out,
 * fails or is stuck.
 */
export function drawWorkers({ workers, here, jobs }: ClusterView): string[] {
  const sum = (read: (worker: ClusterView["workers"][number]) => number) =>
    workers.reduce((total, worker) => total + read(worker), 0);
  const count = ({ rollout, score, gradient }: ClusterView["here"]) => rollout + score + gradient;
  const ready = workers.filter(({ state }) => state === "ready").length;
  const wrong = sum(({ audits }) => audits.failed);
  const audited = wrong + sum(({ audits }) => audits.passed);
  const facts = [
    `${ready} ready`,
    wrong > 0 ? pc.red(`${wrong} of ${audited} audits FAILED`) : "no audit failed",
    `${count(here)} jobs here, ${sum(({ done }) => count(done))} elsewhere`,
    `${jobs.redelivered} redelivered`,
    ...(jobs.abandoned > 0 ? [pc.red(`${jobs.abandoned} lost, done here`)] : []),
  ];
  const name = (what: string, wanted: WorkerState, explain: (worker: WorkerView) => string | null) => {
    const list = workers.filter(({ state }) => state === wanted);
    if (list.length === 0) return [];
    const names = list.slice(0, NAMED).map((worker) => {
      const why = explain(worker);
      return makePrintableLine(why === null ? worker.id : `${worker.id} (${why})`);
    });
    const more = list.length > NAMED ? [`${list.length - NAMED} more`] : [];
    return [pc.red(`${what}: ${[...names, ...more].join(", ")}`)];
  };
  return [
    `${pc.bold("workers")} ${facts.join(" · ")}`,
    ...name("shut out", "shut-out", ({ reason }) => reason),
    ...name("failing", "failing", ({ lastFailure }) => lastFailure),
    ...name("stuck", "stuck", ({ oldest }) => `its oldest job has ${oldest} s`),
  ];
}
