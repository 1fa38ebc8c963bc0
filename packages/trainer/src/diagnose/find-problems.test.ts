import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseFilter } from "@cria/rollout";
import { describe, expect, it } from "vitest";
import type { StepMetrics } from "../step-metrics.js";
import { findProblems } from "./find-problems.js";

const readRun = (name: string): StepMetrics[] =>
  readFileSync(join(import.meta.dirname, "..", "..", "fixtures", "healthy-runs", `${name}.jsonl`), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as StepMetrics);

/** A step in which no conversation has an advantage. */
const silent = (step: number, more: StepMetrics = {}): StepMetrics => ({
  "training/global_step": step,
  "rollout/kept": 64,
  "critic/score/mean": 0,
  "critic/score/max": 0,
  "critic/score/min": 0,
  "reward/score/mean": 0,
  "critic/rewards/frac_zero_std": 1,
  "critic/advantages/max": 0,
  "critic/advantages/min": 0,
  "tool_call_counts/mean": 1,
  ...more,
});
const makeRun = (more: StepMetrics = {}, steps = 5) => Array.from({ length: steps }, (_, i) => silent(i + 1, more));
const options = { hasTools: true };
const learning = { "critic/advantages/max": 1.5, "critic/rewards/frac_zero_std": 0.5 };

describe("rules about runs that cannot learn", () => {
  // Both were trained with the committed examples and `trainer.test_freq=10`; see README.md beside the files.
  it.each(["calculator", "code-game"])("say nothing of %s at any step, nor of its end alone", (name) => {
    const history = readRun(name);
    expect(history.length).toBeGreaterThan(30);
    for (let length = 1; length <= history.length; length++)
      for (const hasTools of [true, false]) {
        expect(findProblems(history.slice(0, length), { hasTools, fewest: 3 })).toEqual([]);
        expect(findProblems(history.slice(length - 1), { hasTools, fewest: 3 })).toEqual([]);
      }
  });

  it.each<[string, StepMetrics, RegExp, string | null]>([
    [
      "unknown_tool",
      { "agent_loop/tool_unknown_tool/mean": 0.55 },
      /^55 % of the tool calls name a tool/,
      "unknown_tools>0",
    ],
    [
      "invalid_call",
      { "agent_loop/tool_invalid_call/mean": 0.3, "agent_loop/tool_invalid_arguments/mean": 0.2 },
      /^50 % of the tool calls cannot be read/,
      "invalid_calls>0 || invalid_arguments>0",
    ],
    [
      "tool_error",
      {
        "agent_loop/tool_timeout/mean": 0.4,
        "agent_loop/tool_errors/search/mean": 0.3,
        "agent_loop/tool_errors/a/b/mean": 0.1,
      },
      /^40 % of the tool calls fail in the tool itself, mostly search/,
      "tool_errors>0",
    ],
    ["environment", { "rollout/kept": 0, "rollout/failed_ratio": 1 }, /^100 % of the conversations fail/, "failed"],
    ["truncated", { "response_length/clip_ratio": 0.4 }, /^40 % .* no token is left/, "truncated"],
    ["turn_limit", { "response/turn_limit_ratio": 0.9 }, /^90 % .* no turn is left/, 'finish_reason == "tool_calls"'],
    ["no_calls", { "tool_call_counts/mean": 0 }, /never calls a tool/, null],
    ["no_reward", {}, /every conversation is given the same reward, 0$/, null],
    [
      "no_reward",
      { "critic/score/min": -1, "critic/score/mean": -0.5 },
      /no conversation is given a reward above 0/,
      null,
    ],
    [
      "same_reward",
      { "critic/score/max": 1, "critic/score/min": 1, "critic/score/mean": 1 },
      /the same reward, 1$/,
      null,
    ],
    ["no_spread", { "critic/score/max": 1, "critic/score/mean": 0.5 }, /too much alike/, null],
  ])("%s: %j", (rule, metrics, cause, filter) => {
    const [problem] = findProblems(makeRun(metrics), options);
    expect(problem).toMatchObject({ rule, step: 5, filter, cause: expect.stringMatching(cause) });
    expect(problem!.seen).toMatch(/^In steps 1 to 5 no conversation /);
    if (filter !== null) expect(() => parseFilter(filter)).not.toThrow();
  });

  it("the cause that explains most comes first; the others follow", () => {
    const run = makeRun({ "agent_loop/tool_unknown_tool/mean": 0.2, "agent_loop/tool_invalid_call/mean": 0.6 });
    expect(
      findProblems(run, options)
        .map(({ rule }) => rule)
        .slice(0, 2),
    ).toEqual(["invalid_call", "unknown_tool"]);
  });

  it("wait for five steps, and for fewer where the run has no more", () => {
    expect(findProblems(makeRun({}, 4), options)).toEqual([]);
    expect(findProblems(makeRun({}, 4), { ...options, fewest: 3 })).toHaveLength(1);
    // A validation before training is no step.
    expect(findProblems([{ "training/global_step": 0, "val-core/x": 1 }, ...makeRun({}, 4)], options)).toEqual([]);
  });

  it("a lucky conversation does not silence them, two do; nor does an estimator without groups confuse them", () => {
    expect(findProblems([...makeRun({}, 4), silent(5, learning)], options)[0]!.seen).toMatch(/^In 4 of steps 1 to 5/);
    expect(findProblems([...makeRun({}, 3), silent(4, learning), silent(5, learning)], options)).toEqual([]);
    const { "critic/rewards/frac_zero_std": _, ...alone } = silent(1, learning);
    expect(findProblems(Array(5).fill(alone), options)).toEqual([]);
  });

  it("say nothing of a run that has learned all there is", () => {
    const solved = { "critic/score/max": 1, "critic/score/min": 1, "critic/score/mean": 1, "reward/score/mean": 1 };
    const begin = Array.from({ length: 5 }, (_, i) => silent(i + 1, { ...learning, "critic/score/mean": 0.4 }));
    expect(findProblems([...begin, ...makeRun(solved)], options)).toEqual([]);
    expect(findProblems(makeRun(solved), options)).toHaveLength(1);
  });
});
