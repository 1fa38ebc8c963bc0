import type { TrajectorySegment } from "./trajectory.js";

/** One conversation of a trajectory: the path from an initial segment to a segment without a successor. */
export interface TrajectoryPath {
  /** Index in the trajectory of each of its tokens. */
  indices: Int32Array;
  /** Number of leading tokens that belong to earlier paths too, and are counted there. */
  own: number;
}

/** A trajectory's paths, in the order of their last segments. Without segments it has one path, of all its tokens. */
export function listPaths({
  tokenIds,
  segments,
}: {
  tokenIds: ArrayLike<number>;
  segments?: readonly TrajectorySegment[];
}): TrajectoryPath[] {
  if (!segments) return [{ indices: Int32Array.from({ length: tokenIds.length }, (_, t) => t), own: 0 }];
  const parents = new Set(segments.map(({ parent }) => parent));
  const seen = new Set<number>();
  return [...segments.keys()]
    .filter((index) => !parents.has(index))
    .map((leaf) => {
      const way: number[] = [];
      for (let at = leaf; at >= 0; at = segments[at]!.parent) way.unshift(at);
      const indices: number[] = [];
      let own = 0;
      for (const index of way) {
        const { start, end } = segments[index]!;
        for (let t = start; t < end; t++) indices.push(t);
        if (seen.has(index)) own = indices.length;
        seen.add(index);
      }
      return { indices: Int32Array.from(indices), own };
    });
}
