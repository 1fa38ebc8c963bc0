import type { Trajectory } from "@cria/core";

/** Share of the judged conversations that reached the goal, in [0, 1]; null: none was judged. */
export function measureSuccess(trajectories: readonly Pick<Trajectory, "rewards">[]): number | null {
  const judged = trajectories.flatMap(({ rewards }) => rewards.success ?? []);
  return judged.length > 0 ? judged.filter((reached) => reached).length / judged.length : null;
}
