import type { ClusterView } from "@cria/viewer/api";
import { colors as pc } from "../terminal/colors.js";
import { makePrintableLine } from "../terminal/printable-text.js";

/** Workers that are named; the others are counted. */
const NAMED = 3;

/** A training's workers in two lines at most: how many, what is done where, what went wrong, and who is shut out. */
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
    ...(jobs.abandoned > 0 ? [pc.red(`${jobs.abandoned} given up`)] : []),
  ];
  const out = workers.filter(({ state }) => state === "shut-out");
  const names = out
    .slice(0, NAMED)
    .map(({ id, reason }) => makePrintableLine(reason === null ? id : `${id} (${reason})`));
  const more = out.length > NAMED ? [`${out.length - NAMED} more`] : [];
  const line = `${pc.bold("workers")} ${facts.join(" · ")}`;
  return out.length > 0 ? [line, pc.red(`shut out: ${[...names, ...more].join(", ")}`)] : [line];
}
