import type { Trajectory } from "@cria/core";
import { loopCounters } from "@cria/rollout";

/** Entries of `Trajectory.metrics` that are logged under other names elsewhere. */
const reportedElsewhere = new Set([
  "tool_calls",
  "generate_s",
  "tool_s",
  "interaction_s",
  "prefill_tokens",
  "reused_tokens",
  "decode_tokens",
  // Counts of failures.
  "failed",
  "refilled",
  "reward_failed",
]);

/** Prefix of a tool's name. */
const TOOL_SECONDS = "tool_s/";

/**
 * Averages the metrics of agent loops, tools and interactions, under the names in docs/metrics.md. Counters are
 * averaged over the conversations, zeros included; metrics that a tool or an interaction returned are averaged over its
 * answers.
 */
export function averageLoopMetrics(trajectories: readonly Pick<Trajectory, "metrics">[]): Record<string, number> {
  const sums = new Map<string, number>(loopCounters.map((name) => [name, 0]));
  for (const { metrics } of trajectories)
    for (const [name, value] of Object.entries(metrics)) sums.set(name, (sums.get(name) ?? 0) + value);
  const averages: Record<string, number> = {};
  const answers = findAnswers(sums);
  for (const [name, sum] of sums) {
    if (reportedElsewhere.has(name) || name.startsWith(TOOL_SECONDS)) continue;
    const owner = answers.find(({ prefix }) => name.startsWith(prefix));
    if (owner) averages[`${name}/mean`] = sum / owner.count;
    else averages[`agent_loop/${name}/mean`] = sum / Math.max(1, trajectories.length);
  }
  averages["agent_loop/tool_error_rate"] = sums.get("tool_errors")! / Math.max(1, sums.get("tool_calls")!);
  return averages;
}

/** Mean seconds per call of each tool: `timing_s/tool/<tool>`. */
export function averageToolSeconds(trajectories: readonly Pick<Trajectory, "metrics">[]): Record<string, number> {
  const sums = new Map<string, number>();
  for (const { metrics } of trajectories)
    for (const [name, value] of Object.entries(metrics)) sums.set(name, (sums.get(name) ?? 0) + value);
  const averages: Record<string, number> = {};
  for (const [name, seconds] of sums) {
    if (!name.startsWith(TOOL_SECONDS)) continue;
    const tool = name.slice(TOOL_SECONDS.length);
    const calls = (sums.get(`tool_answers/${tool}`) ?? 0) + (sums.get(`tool_errors/${tool}`) ?? 0);
    if (calls > 0) averages[`timing_s/tool/${tool}`] = seconds / calls;
  }
  return averages;
}

/** Number of answers of each tool and interaction, and the prefix of its metrics' names. */
function findAnswers(sums: ReadonlyMap<string, number>): { prefix: string; count: number }[] {
  return [...sums].flatMap(([name, count]) => {
    const [, kind, owner] = /^(tool|interaction)_answers\/(.*)$/s.exec(name) ?? [];
    return kind ? [{ prefix: `${kind}/${owner}/`, count }] : [];
  });
}

/** Share of the groups whose rewards are all equal, up to rounding; null if no group has two members. */
export function countGroupsWithoutSpread(groups: readonly string[], rewards: readonly number[]): number | null {
  const byGroup = new Map<string, number[]>();
  groups.forEach((group, i) => {
    byGroup.set(group, [...(byGroup.get(group) ?? []), rewards[i]!]);
  });
  const compared = [...byGroup.values()].filter((list) => list.length > 1);
  if (compared.length === 0) return null;
  const isConstant = (list: readonly number[]) =>
    Math.max(...list) - Math.min(...list) <= 1e-9 * (1 + Math.abs(list[0]!));
  return compared.filter(isConstant).length / compared.length;
}
