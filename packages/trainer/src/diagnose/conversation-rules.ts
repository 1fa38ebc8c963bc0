import { adviseExamples, percent, type Remark, type Rule, shorten } from "./rule.js";
import { type RunHistory, WINDOW } from "./run-history.js";

const TOOL_ERRORS = "agent_loop/tool_errors/";
const TOOL_SECONDS = "timing_s/tool/";
const MULTI_TURN = "actor_rollout_ref.rollout.multi_turn";

/**
 * True if a share is too high: at least `silent` in a run that learns nothing; at least `learning` in every recent
 * step in a run whose reward does not rise.
 */
function isTooHigh(run: RunHistory, share: number, least: number, { silent, learning }: Limits): boolean {
  if (run.silence !== null) return share >= silent;
  return run.steps.length >= 2 * WINDOW && !run.isRising && Math.min(share, least) >= learning;
}

interface Limits {
  silent: number;
  learning: number;
}

/** Share of tool calls that the counters count: over the recent steps, and the smallest of any recent step. */
function shareOfCalls(run: RunHistory, ...counters: string[]): { share: number; least: number } {
  const shares = run.recent.map((step) => {
    const calls = step["tool_call_counts/mean"] ?? 0;
    const counted = counters.reduce((sum, name) => sum + (step[`agent_loop/${name}/mean`] ?? 0), 0);
    return { calls, counted };
  });
  const sum = (key: "calls" | "counted") => shares.reduce((total, entry) => total + entry[key], 0);
  return {
    share: sum("calls") > 0 ? sum("counted") / sum("calls") : 0,
    least: Math.min(...shares.map(({ calls, counted }) => (calls > 0 ? counted / calls : 0))),
  };
}

/**
 * True if for five steps every conversation that calls a tool runs out of tokens, so that none can use the tool's
 * answer. Some call several times, so that there may be more calls than callers.
 */
function endsCallers(run: RunHistory): boolean {
  if (run.recent.length < WINDOW || run.isRising) return false;
  return run.recent.every((step) => {
    const callers = Math.min(1, step["tool_call_counts/mean"] ?? 0);
    return callers >= 0.1 && (step["response_length/clip_ratio"] ?? 0) >= 0.95 * callers;
  });
}

/** A remark about a share of the calls or conversations. */
function remarkOn(run: RunHistory, share: number, remark: Omit<Remark, "severity" | "weight">): Remark {
  const severity = run.silence === null ? "medium" : "high";
  return { ...remark, severity, weight: 0.9 * share, isCause: true };
}

/** The name with the largest mean in a family of metrics; null if there is none. */
function findWorst(run: RunHistory, prefix: string, suffix = ""): string | null {
  const names = new Set(run.recent.flatMap((step) => Object.keys(step)));
  const [worst] = [...names]
    .filter((name) => name.startsWith(prefix) && name.endsWith(suffix) && name.length > prefix.length + suffix.length)
    .sort((a, b) => run.mean(b) - run.mean(a));
  return worst === undefined ? null : worst.slice(prefix.length, worst.length - suffix.length);
}

/** Rules about conversations: calls, tools, lengths. */
export const conversationRules: readonly Rule[] = [
  {
    name: "unknown_tool",
    when: "Half of the tool calls name a tool that does not exist for five steps while the reward does not rise; a tenth where nothing is learned.",
    look: (run) => {
      const { share, least } = shareOfCalls(run, "tool_unknown_tool");
      if (!isTooHigh(run, share, least, { silent: 0.1, learning: 0.5 })) return null;
      return remarkOn(run, share, {
        sentence: `${percent(share)} of the tool calls name a tool that does not exist`,
        remedy: `Name the tools in the prompt as tools.yaml does, or ${adviseExamples(run)}`,
        keys: [`${MULTI_TURN}.tool_config_path`],
        filter: "unknown_tools>0",
      });
    },
  },
  {
    name: "invalid_call",
    when: "Half of the tool calls cannot be read or do not fit the schema for five steps while the reward does not rise; a tenth where nothing is learned.",
    look: (run) => {
      const { share, least } = shareOfCalls(run, "tool_invalid_call", "tool_invalid_arguments");
      if (!isTooHigh(run, share, least, { silent: 0.1, learning: 0.5 })) return null;
      return remarkOn(run, share, {
        sentence: `${percent(share)} of the tool calls cannot be read, or do not fit the tool's schema`,
        remedy: `Check that multi_turn.format is what the model was trained to write, or ${adviseExamples(run)}`,
        keys: [`${MULTI_TURN}.format`, `${MULTI_TURN}.tool_config_path`],
        filter: "invalid_calls>0 || invalid_arguments>0",
      });
    },
  },
  {
    name: "dead_tool",
    when: "Half of the tool calls fail in the tool itself for five steps while the reward does not rise; a fifth where nothing is learned.",
    look: (run) => {
      const kinds = ["tool_timeout", "tool_exception", "tool_unavailable", "tool_bad_response"];
      const { share, least } = shareOfCalls(run, ...kinds);
      if (!isTooHigh(run, share, least, { silent: 0.2, learning: 0.5 })) return null;
      const [worst] = kinds.sort((a, b) => run.mean(`agent_loop/${b}/mean`) - run.mean(`agent_loop/${a}/mean`));
      const tool = findWorst(run, TOOL_ERRORS, "/mean");
      const isLate = worst === "tool_timeout";
      return remarkOn(run, share, {
        sentence: `${percent(share)} of the tool calls fail in the tool itself${tool === null ? "" : `, mostly in ${tool}`}${isLate ? ", which takes too long" : ""}`,
        remedy: isLate
          ? "Try the tool alone (cria check-env tools.yaml), or raise multi_turn.tool_timeout_s"
          : "Try the tool alone: cria check-env tools.yaml",
        keys: [`${MULTI_TURN}.${isLate ? "tool_timeout_s" : "tool_config_path"}`],
        filter: "tool_errors>0",
      });
    },
  },
  {
    name: "slow_tool",
    when: "Conversations wait for tools three times as long as they generate, over half a second each, and rollouts are most of the step.",
    look: (run) => {
      const waiting = run.mean("timing_s/agent_loop/tool_calls/mean");
      const generating = run.mean("timing_s/agent_loop/generate_sequences/mean");
      const rollout = run.mean("timing_s/gen") / Math.max(1e-9, run.mean("timing_s/step"));
      if (waiting < 0.5 || waiting < 3 * generating || rollout < 0.5 || run.steps.length < 5) return null;
      const tool = findWorst(run, TOOL_SECONDS);
      const most = tool === null ? "" : `, mostly for ${tool} (${shorten(run.mean(TOOL_SECONDS + tool))} s a call)`;
      return {
        severity: "low",
        weight: waiting / (waiting + generating),
        sentence: `A conversation waits ${shorten(waiting)} s for tools${most} and generates for ${shorten(generating)} s`,
        remedy:
          "Make the tool faster, let more conversations run at once (rollout.max_num_seqs), sample a step ahead (trainer.v1.trainer_mode: colocate_async), or lower multi_turn.tool_timeout_s",
        keys: ["actor_rollout_ref.rollout.max_num_seqs", "trainer.v1.trainer_mode", `${MULTI_TURN}.tool_timeout_s`],
        filter: "tool_calls>0",
      };
    },
  },
  {
    name: "environment",
    when: "Half of the conversations are broken by the environment or its judge.",
    look: (run) => {
      const share = run.mean("rollout/failed_ratio");
      if (share < 0.5) return null;
      return remarkOn(run, share, {
        sentence: `${percent(share)} of the conversations fail in the environment or its judge, and nothing is learned from them`,
        remedy: "Read the error of one; it says why",
        keys: ["actor_rollout_ref.rollout.on_failure"],
        filter: "failed",
      });
    },
  },
  {
    name: "truncated",
    when: "Half of the conversations end because no token is left for five steps while the reward does not rise; three in ten where nothing is learned; a tenth where these are all that call a tool.",
    look: (run) => {
      const name = "response_length/clip_ratio";
      const share = run.mean(name);
      const areCallers = endsCallers(run);
      if (!areCallers && !isTooHigh(run, share, run.min(name), { silent: 0.3, learning: 0.5 })) return null;
      return remarkOn(run, share, {
        sentence: `${percent(share)} of the conversations end because no token is left${areCallers ? ": all that call a tool" : ""}`,
        remedy: "Raise data.max_response_length, or ask for shorter answers",
        keys: ["data.max_response_length", "actor_rollout_ref.rollout.max_model_len"],
        filter: "truncated",
      });
    },
  },
  {
    name: "turn_limit",
    when: "Half of the conversations end with a call that no turn is left to answer for five steps while the reward does not rise; three in ten where nothing is learned.",
    look: (run) => {
      const name = "response/turn_limit_ratio";
      const share = run.mean(name);
      if (!isTooHigh(run, share, run.min(name), { silent: 0.3, learning: 0.5 })) return null;
      return remarkOn(run, share, {
        sentence: `${percent(share)} of the conversations end with a call, for no turn is left to answer it`,
        remedy: "Raise rollout.multi_turn.max_assistant_turns",
        keys: [`${MULTI_TURN}.max_assistant_turns`],
        filter: 'finish_reason == "tool_calls"',
      });
    },
  },
];
