import { Batch, DenseColumn, RaggedColumn, type Trajectory, ValueColumn } from "@cria/core";

/**
 * Trajectories as columns, in their order. Ragged, one value a token: `tokenIds`, `responseMask`, `rolloutLogprobs`. One
 * value a trajectory: `promptLength`, `rowIndex`, `sampleIndex`, `reward`, `uid`, `dataSource`, `finishReason`. What
 * training computes joins them with `with`, and `checkAligned` tells whether it fits.
 */
export function batchTrajectories(trajectories: readonly Trajectory[]): Batch {
  const integers = (pick: (t: Trajectory) => number) => new DenseColumn(Int32Array.from(trajectories, pick));
  const batch = new Batch({
    tokenIds: RaggedColumn.fromRows(
      trajectories.map((t) => t.tokenIds),
      "int32",
    ),
    responseMask: RaggedColumn.fromRows(
      trajectories.map((t) => t.responseMask),
      "uint8",
    ),
    rolloutLogprobs: RaggedColumn.fromRows(
      trajectories.map((t) => t.rolloutLogprobs),
      "float32",
    ),
    promptLength: integers((t) => t.promptLength),
    rowIndex: integers((t) => t.rowIndex),
    sampleIndex: integers((t) => t.sampleIndex),
    reward: new DenseColumn(Float64Array.from(trajectories, (t) => t.reward)),
    uid: new ValueColumn(trajectories.map((t) => t.uid)),
    dataSource: new ValueColumn(trajectories.map((t) => t.dataSource)),
    finishReason: new ValueColumn(trajectories.map((t) => t.finishReason)),
  });
  batch.checkAligned(["tokenIds", "responseMask", "rolloutLogprobs"]);
  return batch;
}
