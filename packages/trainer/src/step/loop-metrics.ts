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
  // Of failures.
  "failed",
  "refilled",
  "reward_failed",
]);

/** Followed by the tool's name. */
const TOOL_SECONDS = "tool_s/";

/**
 * What agent loops, tools and interactions counted, by the names of docs/metrics.md: counters as means over the
 * conversations, zeros included; what a tool or an interaction returned as means over its answers.
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

/** Seconds of a call, by tool: `timing_s/tool/<tool>`. */
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

/** How often each tool and interaction answered, and how the names of its metrics begin. */
function findAnswers(sums: ReadonlyMap<string, number>): { prefix: string; count: number }[] {
  return [...sums].flatMap(([name, count]) => {
    const [, kind, owner] = /^(tool|interaction)_answers\/(.*)$/s.exec(name) ?? [];
    return kind ? [{ prefix: `${kind}/${owner}/`, count }] : [];
  });
}

/** Share of the groups whose rewards are all equal, but for rounding. null where no group has two members. */
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
