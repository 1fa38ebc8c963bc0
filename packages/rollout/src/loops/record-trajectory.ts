import { hasFailed, type PolicyEngine, type RequestState } from "@cria/core";
import type { DatasetRow } from "../data/dataset-row.js";
import { findImages } from "../images/find-images.js";
import type { UnjudgedTrajectory } from "../unjudged-trajectory.js";
import type { CompleteOutput } from "./complete-output.js";
import type { StateLog } from "./state-log.js";

/** A loop's output as the record of its rollout. */
export function recordTrajectory(
  row: DatasetRow,
  sampleIndex: number,
  output: CompleteOutput,
  request: StateLog<RequestState>,
  engine: Pick<PolicyEngine, "images" | "info">,
): UnjudgedTrajectory {
  const { transitions, turns, turnScores, toolRewards, segments, ...record } = output;
  const ended = !hasFailed(output);
  request.enter(ended ? "completed" : "failed");
  // A token that is not trained on cannot have earned a reward.
  const counts = ended && output.responseMask.includes(1);
  const images = findImages(output.tokenIds, engine);
  return {
    ...record,
    ...(segments ? { segments } : {}),
    ...(images.length > 0 ? { images } : {}),
    rowIndex: row.index,
    uid: row.uid,
    sampleIndex,
    dataSource: row.dataSource,
    turnScores: counts ? turnScores : [],
    toolRewards: counts ? toolRewards : [],
    metrics: output.error === undefined ? output.metrics : { ...output.metrics, failed: 1 },
    timeline: { loop: transitions, request: request.transitions, turns },
  };
}
