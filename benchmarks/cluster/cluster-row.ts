import type { Row } from "../row.js";
import { type Point, type Scenario, titleOf } from "./scenarios.js";

export interface ClusterRow extends Row {
  /** Of simulated rows. */
  scenario?: Scenario;
  points?: Point[];
}

const MOST_METRIC = "most workers of whose time at least half is used";

/** @param points by growing numbers of workers. */
export function makeRow(scenario: Scenario, points: Point[]): ClusterRow {
  return {
    case: titleOf(scenario),
    metric: MOST_METRIC,
    ours: Math.max(0, ...points.filter(({ efficiency }) => efficiency >= 0.5).map(({ workers }) => workers)),
    peers: {},
    target: null,
    met: null,
    scenario,
    points: points.map(roundPoint),
  };
}

/** Four digits: the rest is no knowledge. */
export function roundPoint(point: Point): Point {
  const round = ([name, value]: [string, unknown]) => [
    name,
    typeof value === "number" ? Number(value.toPrecision(4)) : value,
  ];
  return Object.fromEntries(Object.entries(point).map((entry) => round(entry))) as unknown as Point;
}
