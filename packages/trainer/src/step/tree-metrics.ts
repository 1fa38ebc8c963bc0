import type { Trajectory } from "@cria/core";

/**
 * Counts what the trees of a step shared. The metrics are missing without trees: `branches`, the conversations that
 * went on from a turn of another one; `turns/mean`, the turns that each of them took over; `shared_tokens`, the tokens
 * of those turns and their replies, which were neither sampled nor evaluated again; `own_tokens`, all further tokens of
 * these conversations.
 */
export function measureTrees(
  conversations: readonly Pick<Trajectory, "branch" | "tokenIds" | "promptLength">[],
): Record<string, number> {
  if (!conversations.some(({ branch }) => branch)) return {};
  let [branches, turns, shared, own] = [0, 0, 0, 0];
  for (const { branch, tokenIds, promptLength } of conversations) {
    if (!branch || branch.parent === null) continue;
    branches++;
    turns += branch.turns;
    shared += branch.tokens - promptLength;
    own += Math.max(0, tokenIds.length - branch.tokens);
  }
  return {
    "tree/branches": branches,
    "tree/turns/mean": turns / Math.max(1, branches),
    "tree/shared_tokens": shared,
    "tree/own_tokens": own,
  };
}
