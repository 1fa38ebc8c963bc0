import type { StepMetrics } from "../step-metrics.js";

/**
 * Finds in the metrics of a run what keeps it from learning. Each rule looks at the same stretch of steps and either
 * has nothing to say or names a problem; the first that speaks is the likeliest. Nothing is printed here.
 */
export interface Problem {
  /** Stable name of the rule. */
  rule: string;
  /** The symptom, with numbers: a sentence. */
  seen: string;
  /** The likely cause, with numbers: a sentence. */
  cause: string;
  /** What to do about it: a sentence. */
  remedy: string;
  /** The step whose conversations show it. */
  step: number;
  /** Which of them, for `cria show`; null: the worst. */
  filter: string | null;
}

export interface FindProblemsOptions {
  /** Whether conversations have tools. */
  hasTools: boolean;
  /** Steps that are needed before any problem is reported; default 5. */
  fewest?: number;
}

/** Steps that are looked at. */
const WINDOW = 5;
/** A mean score that rises by this much since the beginning is learning. */
const PROGRESS = 0.05;

/** The steps that rules look at, the last ones of a run. */
interface Stretch {
  steps: readonly StepMetrics[];
  hasTools: boolean;
  /** Mean of a metric over the steps that have it; 0 where none has. */
  mean: (name: string) => number;
  max: (name: string) => number;
  min: (name: string) => number;
}

/** What a rule finds; seen and step are the same for all rules of a symptom. */
type Cause = Pick<Problem, "cause" | "remedy" | "filter">;
/** How much of the problem a cause explains, 0 to 1; null: nothing to say. */
type CauseRule = (stretch: Stretch) => (Cause & { weight: number }) | null;

const percent = (share: number) => `${(100 * Math.min(1, share)).toFixed(share < 0.1 ? 1 : 0)} %`;

/** Tool calls of a conversation, and how many of them a counter has. */
function shareOfCalls({ mean }: Stretch, ...counters: string[]): number {
  const calls = mean("tool_call_counts/mean");
  const counted = counters.reduce((sum, name) => sum + mean(`agent_loop/${name}/mean`), 0);
  return calls > 0 ? counted / calls : 0;
}

/** Why a run without a learning signal has none: of those that hold, the one that explains most. */
const causes: Record<string, CauseRule> = {
  unknown_tool: (stretch) => {
    const share = shareOfCalls(stretch, "tool_unknown_tool");
    if (share < 0.1) return null;
    return {
      weight: share,
      cause: `${percent(share)} of the tool calls name a tool that does not exist`,
      remedy: "Name the tools in the prompt as tools.yaml does, or show the policy some calls first (cria sft)",
      filter: "unknown_tools>0",
    };
  },
  invalid_call: (stretch) => {
    const share = shareOfCalls(stretch, "tool_invalid_call", "tool_invalid_arguments");
    if (share < 0.1) return null;
    return {
      weight: share,
      cause: `${percent(share)} of the tool calls cannot be read, or do not fit the tool's schema`,
      remedy:
        "Check that multi_turn.format is what the model was trained to write, or show the policy some calls first (cria sft)",
      filter: "invalid_calls>0 || invalid_arguments>0",
    };
  },
  tool_error: (stretch) => {
    const share = shareOfCalls(stretch, "tool_timeout", "tool_exception", "tool_unavailable", "tool_bad_response");
    if (share < 0.2) return null;
    return {
      weight: share,
      cause: `${percent(share)} of the tool calls fail in the tool itself${nameWorstTool(stretch)}`,
      remedy: "Try the tool alone: cria check-env tools.yaml",
      filter: "tool_errors>0",
    };
  },
  environment: ({ mean }) => {
    const share = mean("rollout/failed_ratio");
    if (share < 0.5) return null;
    return {
      weight: share,
      cause: `${percent(share)} of the conversations fail in the environment or its judge, and nothing is learned from them`,
      remedy: "The error of each says why",
      filter: "failed",
    };
  },
  truncated: ({ mean }) => {
    const share = mean("response_length/clip_ratio");
    if (share < 0.3) return null;
    return {
      weight: share,
      cause: `${percent(share)} of the conversations end because no token is left`,
      remedy: "Raise data.max_response_length, or ask for shorter answers",
      filter: "truncated",
    };
  },
  turn_limit: ({ mean }) => {
    const share = mean("response/turn_limit_ratio");
    if (share < 0.3) return null;
    return {
      weight: share,
      cause: `${percent(share)} of the conversations end with a call, for no turn is left to answer it`,
      remedy: "Raise rollout.multi_turn.max_assistant_turns",
      filter: 'finish_reason == "tool_calls"',
    };
  },
  no_calls: ({ hasTools, mean, max }) => {
    if (!hasTools || mean("tool_call_counts/mean") > 0 || max("reward/score/mean") > 0) return null;
    return {
      weight: 0.1,
      cause: "the policy never calls a tool, and no conversation is given a reward above 0",
      remedy: "Say in the prompt that there are tools, or show the policy some calls first (cria sft)",
      filter: null,
    };
  },
  no_reward: ({ max, min }) => {
    const highest = max("critic/score/max");
    if (highest > 0 || !Number.isFinite(highest)) return null;
    const same = highest === min("critic/score/min");
    return {
      weight: 0.05,
      cause: same
        ? `every conversation is given the same reward, ${highest}`
        : "no conversation is given a reward above 0",
      remedy:
        "Look whether answers that deserve a reward get it; if none does, begin with easier rows, or with examples (cria sft)",
      filter: null,
    };
  },
  same_reward: ({ max, min }) => {
    const highest = max("critic/score/max");
    if (highest <= 0 || highest !== min("critic/score/min")) return null;
    return {
      weight: 0.05,
      cause: `every conversation is given the same reward, ${highest}`,
      remedy: "Look whether the reward tells good answers from bad ones; if it does, take harder rows",
      filter: null,
    };
  },
  no_spread: ({ max, min }) => {
    if (max("critic/score/max") <= 0 || max("critic/score/max") === min("critic/score/min")) return null;
    return {
      weight: 0.04,
      cause: "the conversations of each prompt are too much alike",
      remedy:
        "Raise rollout.temperature or rollout.n, or take rows that the policy sometimes solves and sometimes does not",
      filter: null,
    };
  },
};

/** ", mostly search": the tool that caused most of the errors, if the tools are known. */
function nameWorstTool({ steps, mean }: Stretch): string {
  const names = new Set(
    steps.flatMap((step) => Object.keys(step).filter((name) => /^agent_loop\/tool_errors\/.+\/mean$/s.test(name))),
  );
  const [worst] = [...names].sort((a, b) => mean(b) - mean(a));
  return worst === undefined ? "" : `, mostly ${worst.slice("agent_loop/tool_errors/".length, -"/mean".length)}`;
}

/** Whether a step gave the policy anything to learn from. */
function isSilent(step: StepMetrics): boolean {
  const highest = Math.max(Math.abs(step["critic/advantages/max"] ?? 0), Math.abs(step["critic/advantages/min"] ?? 0));
  return highest < 1e-6;
}

/**
 * Problems of a run that cannot learn, the likeliest cause first; none for a run that learns, has learned, or has not gone far
 * enough to tell.
 * @param history metrics of its steps, in order; lines that hold only a validation do not count.
 */
export function findProblems(history: readonly StepMetrics[], options: FindProblemsOptions): Problem[] {
  const all = history.filter((metrics) => "rollout/kept" in metrics);
  const { fewest = WINDOW, hasTools } = options;
  if (all.length < fewest) return [];
  const stretch = cutStretch(all.slice(-WINDOW), hasTools);
  const silent = stretch.steps.filter(isSilent).length;
  // One lucky conversation among hundreds does not make a run that learns.
  if (silent < stretch.steps.length - (stretch.steps.length >= WINDOW ? 1 : 0)) return [];
  const before = cutStretch(all.slice(0, WINDOW), hasTools).mean("critic/score/mean");
  if (stretch.mean("critic/score/mean") > before + PROGRESS) return [];
  const seen = describeSilence(stretch, silent);
  const step = stretch.steps.at(-1)!["training/global_step"] ?? 0;
  return Object.entries(causes)
    .flatMap(([rule, look]) => {
      const found = look(stretch);
      return found ? [{ rule, found }] : [];
    })
    .sort((a, b) => b.found.weight - a.found.weight)
    .map(({ rule, found: { weight: _, ...cause } }) => ({ rule, seen, step, ...cause }));
}

function cutStretch(steps: readonly StepMetrics[], hasTools: boolean): Stretch {
  const values = (name: string) => steps.flatMap((step) => step[name] ?? []);
  return {
    steps,
    hasTools,
    mean: (name) => values(name).reduce((sum, value) => sum + value, 0) / Math.max(1, values(name).length),
    max: (name) => values(name).reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY),
    min: (name) => values(name).reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY),
  };
}

function describeSilence({ steps, mean }: Stretch, silent: number): string {
  const [first, last] = [steps[0]!, steps.at(-1)!].map((step) => step["training/global_step"] ?? 0);
  const where = silent === steps.length ? `steps ${first} to ${last}` : `${silent} of steps ${first} to ${last}`;
  if (mean("rollout/kept") === 0) return `In ${where} no conversation was left to learn from`;
  const groups = steps.every((step) => "critic/rewards/frac_zero_std" in step)
    ? ": the conversations of each prompt were all given the same reward"
    : "";
  return `In ${where} no conversation had an advantage${groups} (mean reward ${mean("critic/score/mean").toFixed(3)})`;
}
