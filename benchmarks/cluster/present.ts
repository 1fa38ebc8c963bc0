/** The parts of `docs/cluster-sizes.md` that are made from results. */
import { alignTable } from "../pages/tables.js";
import { formatNumber, type Report } from "../report.js";
import { formatAssumptions } from "./assumptions.js";
import type { ClusterRow } from "./cluster-row.js";
import { drawEfficiency } from "./draw-efficiency.js";
import { measuredTitles } from "./inputs.js";
import { formatOneWorker, formatWaiting } from "./one-machine/present.js";
import { type DesignName, type Point, places, type Scenario, subjects } from "./scenarios.js";
import { countTrained, shapes, type Training } from "./simulation/models.js";
import { WEIGHT_BYTES } from "./simulation/setup.js";

type Rows = readonly ClusterRow[];
type Subject = (typeof subjects)[number];

/** As the page calls them. */
export const designTitles: Record<DesignName, string> = {
  today: "defaults",
  set: "settings",
  fast: "+ faster blobs",
  tree: "+ tree, leaf servers",
};
const designNames = Object.keys(designTitles) as DesignName[];

const nameModel = ({ model, training }: Pick<Scenario, "model" | "training">) =>
  `${model} ${training === "lora" ? "LoRA" : "full"}`;
const nameSpeed = (speed: number) => (speed === 1 ? "as measured" : `${speed} times as fast`);
const nameSubject = (subject: Subject) => `${nameModel(subject)}, workers ${nameSpeed(subject.speed)}`;

/** A panel for each model and speed, a line for each design: in a rack, with a batch that grows. */
export function drawFigure({ rows }: Report<ClusterRow>): string {
  const panels = subjects.map((subject) => ({
    title: nameSubject(subject),
    lines: designNames.map((design) => ({
      name: designTitles[design],
      points: findPoints(rows, { ...subject, place: "rack", batch: "grows", design }),
    })),
  }));
  return drawEfficiency(
    panels,
    designNames.map((design) => designTitles[design]),
  );
}

/** @param part of the page; undefined: what was measured. @throws Error for a part that there is not. */
export function formatTable({ rows }: Report<ClusterRow>, part?: string): string {
  if (part === undefined) return formatMeasured(rows);
  const format = parts[part];
  if (!format) throw new Error(`no part ${part} of the cluster's results: ${Object.keys(parts).join(", ")}`);
  return format(rows);
}

const parts: Record<string, (rows: Report<ClusterRow>["rows"]) => string> = {
  assumptions: formatAssumptions,
  sizes: formatSizes,
  desk: formatDesk,
  rack: formatRack,
  steps: formatSteps,
  fixed: formatFixed,
  sites: formatSites,
  waiting: formatWaiting,
  "one-worker": formatOneWorker,
};

function findPoints(rows: Rows, wanted: Scenario): readonly Point[] {
  const keys = Object.keys(wanted) as (keyof Scenario)[];
  const row = rows.find(({ scenario }) => scenario && keys.every((key) => scenario[key] === wanted[key]));
  if (!row?.points) throw new Error(`not simulated: ${JSON.stringify(wanted)}`);
  return row.points;
}

function formatMeasured(rows: Rows): string {
  const lines = rows
    .filter((row) => measuredTitles.includes(row.case))
    .map((row) => [row.case.replace("measured: ", ""), row.metric, formatLarge(row.ours)]);
  return alignTable([["of", "measured", "median"], ...lines]);
}

const formatLarge = (value: number) =>
  value >= 1e9
    ? `${formatNumber(value / 1e9)} G`
    : value >= 1e6
      ? `${formatNumber(value / 1e6)} M`
      : formatNumber(value);

/** Closed forms: what one step moves, whoever does it. */
function formatSizes(): string {
  const kinds = [
    ...["lora", "full"].flatMap((training) =>
      Object.values(shapes).map((shape) => ({ shape, training: training as Training })),
    ),
  ];
  const lines = kinds.map(({ shape, training }) => {
    const weights = countTrained(shape, training);
    const bytes = weights * WEIGHT_BYTES;
    // One blob, by default: 1 GiB.
    const kept = bytes > 2 ** 30 ? "none: a blob has 1 GiB" : `${Math.floor((20 * 2 ** 30) / bytes)}`;
    return [
      nameModel({ model: shape.name as Scenario["model"], training }),
      `${formatNumber(weights / 1e6)} M`,
      formatBytes(bytes),
      kept,
      formatBytes(1000 * bytes),
      ...[1, 25].map((gbit) => formatSeconds((1000 * bytes) / ((gbit * 1e9) / 8))),
    ];
  });
  const head = [
    "",
    "trained weights",
    "a gradient, or weights",
    "in the server's 20 GiB",
    "1,000 of them",
    "over 1 Gbit/s",
    "over 25 Gbit/s",
  ];
  return alignTable([head, ...lines]);
}

/** How many times one process' speed. */
function formatDesk(rows: Rows): string {
  const lines = subjects
    .filter(({ training }) => training === "lora")
    .flatMap((subject) =>
      (["today", "set"] as const).map((design) => [
        nameSubject(subject),
        designTitles[design],
        ...findPoints(rows, { ...subject, place: "desk", batch: "fixed", design }).map(({ workers, efficiency }) =>
          (workers * efficiency).toFixed(2),
        ),
      ]),
    );
  return alignTable([["", "", ...places.desk.workers.map((count) => `${count}`)], ...lines]);
}

/** The most workers that are used at least half of their time, and what the next number of them waits for. */
function formatRack(rows: Rows): string {
  const lines = subjects.map((subject) => [
    nameSubject(subject),
    ...designNames.map((design) => {
      const points = findPoints(rows, { ...subject, place: "rack", batch: "grows", design });
      const used = points.filter(({ efficiency }) => efficiency >= 0.5);
      const beyond = points.find(
        ({ workers, efficiency }) => efficiency < 0.5 && workers > (used.at(-1)?.workers ?? 0),
      );
      return `${used.at(-1)?.workers ?? "none"}${beyond ? `; ${beyond.limit}` : ""}`;
    }),
  ]);
  return alignTable([["", ...designNames.map((design) => designTitles[design])], ...lines]);
}

/** The page shows the smallest and the largest in detail. */
const isShown = ({ model }: Subject) => model !== "4B";

/** Where the time of a step goes at some sizes. */
function formatSteps(rows: Rows): string {
  const lines = subjects.filter(isShown).flatMap((subject) =>
    (
      [
        ["set", 64],
        ["set", 1000],
        ["tree", 1000],
      ] as const
    ).map(([design, workers]) => {
      const points = findPoints(rows, { ...subject, place: "rack", batch: "grows", design });
      const point = points.find((one) => one.workers === workers)!;
      const { broadcast, rollout, score, gradient, optimizer, seconds } = point;
      return [
        nameSubject(subject),
        `${workers}, ${designTitles[design]}`,
        ...[broadcast, rollout, score, gradient, optimizer, seconds].map(formatSeconds),
        formatShare(point.efficiency),
        point.limit,
      ];
    }),
  );
  const head = ["", "workers", "broadcast", "rollouts", "scores", "gradients", "optimizer", "step", "used", "limit"];
  return alignTable([head, ...lines]);
}

/** The batch stays while the workers become more. */
function formatFixed(rows: Rows): string {
  const counts = [16, 64, 256, 1000] as const;
  const lines = subjects.map((subject) => {
    const points = findPoints(rows, { ...subject, place: "rack", batch: "fixed", design: "tree" });
    return [nameSubject(subject), ...counts.map((count) => describePoint(points, count))];
  });
  return alignTable([["", ...counts.map((count) => `${count} workers`)], ...lines]);
}

function formatSites(rows: Rows): string {
  const shown = subjects.filter((subject) => isShown(subject) && subject.training === "lora");
  const lines = shown.flatMap((subject) =>
    (["set", "fast", "tree"] as const).map((design) => {
      const points = findPoints(rows, { ...subject, place: "sites", batch: "grows", design });
      return [
        nameSubject(subject),
        designTitles[design],
        ...places.sites.workers.map((count) => describePoint(points, count)),
      ];
    }),
  );
  return alignTable([["", "", ...places.sites.workers.map((count) => `${count} workers`)], ...lines]);
}

function describePoint(points: readonly Point[], workers: number): string {
  const { efficiency, limit } = points.find((point) => point.workers === workers)!;
  return `${formatShare(efficiency)}${limit === "workers" ? "" : `, ${limit}`}`;
}

const formatShare = (share: number) => share.toFixed(2);

/** "12 ms", "3.4 s", "56 min", "7.8 h". */
export function formatSeconds(seconds: number): string {
  if (seconds === 0) return "0";
  if (seconds < 0.1) return `${(seconds * 1e3).toPrecision(2)} ms`;
  if (seconds < 120) return `${formatNumber(seconds)} s`;
  if (seconds < 7200) return `${formatNumber(seconds / 60)} min`;
  return `${formatNumber(seconds / 3600)} h`;
}

function formatBytes(bytes: number): string {
  const [unit, name] = bytes >= 1e12 ? [1e12, "TB"] : bytes >= 1e9 ? [1e9, "GB"] : [1e6, "MB"];
  return `${formatNumber(bytes / unit)} ${name}`;
}
