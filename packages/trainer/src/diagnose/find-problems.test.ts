import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseFilter } from "@cria/records";
import { describe, expect, it } from "vitest";
import { listLeaves } from "../config/check-config.js";
import { trainConfigSchema } from "../config/train-config.js";
import type { StepMetrics } from "../step-metrics.js";
import { findProblems } from "./find-problems.js";
import type { Finding } from "./finding.js";
import { ProblemLog } from "./problem-log.js";
import { describeRules, rules } from "./rules.js";
import type { RunContext } from "./run-history.js";

const folder = join(import.meta.dirname, "..", "..", "fixtures", "recorded-runs");
const docs = join(import.meta.dirname, "..", "..", "..", "..", "docs");

/** Output of fixtures/recorded-runs/record-runs.mjs: by metric, a list, or a value that never changes. */
interface RecordedRun {
  config: unknown;
  lines: number;
  columns: Record<string, (number | null)[] | number>;
}

function readRun(kind: "healthy" | "ailing", name: string): { config: unknown; history: StepMetrics[] } {
  const { config, lines, columns } = JSON.parse(
    readFileSync(join(folder, kind, `${name}.json`), "utf8"),
  ) as RecordedRun;
  const history = Array.from({ length: lines }, (_, i) =>
    Object.fromEntries(
      Object.entries(columns).flatMap(([name, column]) => {
        const value = typeof column === "number" ? column : column[i];
        return value === null || value === undefined ? [] : [[name, value]];
      }),
    ),
  );
  return { config, history };
}

const list = (kind: "healthy" | "ailing") =>
  readdirSync(join(folder, kind))
    .map((file) => file.replace(/\.json$/, ""))
    .sort();

describe("runs that learn", () => {
  it.each(list("healthy"))("have no finding in %s at any step, nor at its end alone", (name) => {
    const { config, history } = readRun("healthy", name);
    expect(history.length).toBeGreaterThan(30);
    const context = { hasTools: name !== "code-game", config, fewest: 3 };
    for (let length = 1; length <= history.length; length++) {
      expect(findProblems(history.slice(0, length), context), `the first ${length}`).toEqual([]);
      expect(findProblems(history.slice(length - 1), context), `from ${length}`).toEqual([]);
    }
  });
});

/** Judges a run after each of its steps. */
function follow(history: readonly StepMetrics[], context: RunContext) {
  const log = new ProblemLog();
  let now: Finding[] = [];
  for (const [i, line] of history.entries()) {
    now = findProblems(history.slice(0, i + 1), context);
    log.note(line["training/global_step"]!, now);
  }
  return { log, now };
}

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
const learning = { "critic/advantages/max": 1.5, "critic/rewards/frac_zero_std": 0.5 };
const options = { hasTools: true };

/** First finding of each run: its rule, its sentence, and the filter of the conversations shown. */
const expected: [run: string, rule: string, sentence: RegExp, filter: string | null][] = [
  ["bonus-alone", "bonus_alone", /judged 0 in all 15 steps, so that only tools/, "reward>0 && !success"],
  [
    "dead-tool",
    "dead_tool",
    /^In \d+ of steps 3 to 12 .* likely because 92 % of the tool calls fail .* mostly in calculator, which takes too long/,
    "tool_errors>0",
  ],
  ["entropy-collapse", "entropy_collapse", /^Entropy fell from 0\.\d+ to 0/, null],
  [
    "invalid-arguments",
    "invalid_call",
    /^In steps 3 to 12 hardly any .* likely because 99 % of the tool calls cannot be read/,
    "invalid_calls>0 || invalid_arguments>0",
  ],
  ["judge-alone", "one_part", /come from style: rule is 0 for every conversation/, null],
  [
    "length-bonus",
    "reward_hacking",
    /held-out success falls: .* answers go from \d+ to \d+ tokens/,
    "reward>0 && !success",
  ],
  ["lr-div-1000", "lr_low", /at a learning rate of 0\.0000015/, null],
  [
    "lr-x10",
    "lr_high",
    /fell from 0\.\d+ to 0\.0\d+, entropy went from .* the learning rate, 0\.015, is probably/,
    null,
  ],
  ["lr-x100", "lr_high", /fell from 0\.\d+ to 0, .* 0\.15, is probably too high/, null],
  ["lr-x100-epochs", "lr_high", /an update moved the policy by a KL of 0\.\d+/, null],
  ["no-reward", "no_reward", /^In steps 4 to 8 no .* every conversation is given the same reward, 0\.$/, null],
  ["same-reward", "same_reward", /every conversation is given the same reward, 1\.$/, null],
  ["slow-tool", "slow_tool", /waits 0\.\d+ s for tools, mostly for calculator \(1\.5 s a call\)/, "tool_calls>0"],
  ["template-mismatch", "tokenization", /^The tokens of 51 % /, "metrics.tokenization_mismatch>0"],
  ["truncated", "truncated", /^In 4 of steps 11 to 15 .* likely because 41 % .* no token is left/, "truncated"],
  ["turn-limit", "turn_limit", /no turn is left to answer it/, 'finish_reason == "tool_calls"'],
  [
    "calls-truncated-seed-1",
    "truncated",
    /^In \d+ of steps .* 32 % .* no token is left: all that call a tool\.$/,
    "truncated",
  ],
  [
    "calls-truncated-seed-2",
    "truncated",
    /^In \d+ of steps .* 32 % .* no token is left: all that call a tool\.$/,
    "truncated",
  ],
  [
    "entropy-bonus-seed-1",
    "entropy_bonus",
    /fell from 0\.313 to 0\.\d+ while entropy .* the entropy bonus, 1 a nat/,
    null,
  ],
  ["entropy-bonus-seed-2", "entropy_bonus", /fell from 0\.339 to 0 while entropy .* the entropy bonus, 1 a nat/, null],
  ["readme-lr-x10-seed-1", "lr_high", /fell from 0\.\d+ to .*, 0\.015, is probably too high \(.* no longer\)\.$/, null],
  ["readme-lr-x10-seed-2", "lr_high", /fell from 0\.\d+ to .*, 0\.015, is probably too high \(.* no longer\)\.$/, null],
  [
    "readme-lr-x7-seed-2",
    "kl_high",
    /^The updates of a step move the policy by a KL of 0\.0\d+ \(.* no longer\)\.$/,
    null,
  ],
  [
    "readme-lr-x7-seed-1",
    "lr_high",
    /fell from 0\.\d+ to .*, 0\.01, is probably too high \(at step 21, no longer\)\.$/,
    null,
  ],
  [
    "unknown-tool",
    "unknown_tool",
    /^In steps 3 to 12 hardly any .* likely because 94 % of the tool calls name a tool/,
    "unknown_tools>0",
  ],
];

describe("runs that were made bad on purpose", () => {
  it("are all looked at", () => {
    expect(list("ailing")).toEqual(expected.map(([run]) => run).sort());
  });

  it.each(expected)("%s: %s", (name, rule, sentence, filter) => {
    const { config, history } = readRun("ailing", name);
    const { log, now } = follow(history, { hasTools: true, config });
    const [found] = log.list(now);
    const dump = String(found!.steps.at(-1)![1]);
    expect(found!.holds ? dump : "").toBe(found!.holds ? String(history.at(-1)!["training/global_step"]) : "");
    expect(found).toMatchObject({ rule, sentence: expect.stringMatching(sentence), evidence: [{ dump, filter }] });
    // One sentence each, and keys that exist.
    for (const text of [found!.sentence, found!.remedy]) expect(text).toMatch(/^[^\n]*[^.]\.$/);
    for (const key of found!.keys) expect(known, key).toContain(key);
    if (filter !== null) expect(() => parseFilter(filter)).not.toThrow();
  });
});

describe("the findings of a run", () => {
  const read = (name: string) => {
    const { config, history } = readRun("ailing", name);
    return follow(history, { hasTools: true, config }).log.all;
  };

  it.each([
    ["calls-truncated-seed-1", "truncated", 5],
    ["calls-truncated-seed-2", "truncated", 5],
    ["entropy-bonus-seed-1", "entropy_bonus", 11],
    ["entropy-bonus-seed-2", "entropy_bonus", 11],
    ["readme-lr-x10-seed-1", "lr_high", 10],
    ["readme-lr-x10-seed-2", "lr_high", 16],
  ])("%s: %s, from step %i on", (name, rule, from) => {
    expect(read(name).find((finding) => finding.rule === rule)!.steps[0]![0]).toBe(from);
  });

  it("a reward that fell to a fifth needs no second sign; half of it does", () => {
    const fall = (to: number) => {
      const scores = [...Array(8).fill(0.94), to, to, to];
      const lines = scores.map((score, i) =>
        silent(i + 1, { ...learning, "critic/score/mean": score, "critic/score/max": 1, "actor/entropy": 0.3 }),
      );
      return findProblems(lines, { hasTools: true }).map(({ rule }) => rule);
    };
    expect(fall(0.19)).toEqual(["lr_high"]);
    expect(fall(0.47)).toEqual([]);
  });

  it("do not flicker if tokens end before an answer, and blame no learning rate for a bonus", () => {
    expect(read("calls-truncated-seed-1").find(({ rule }) => rule === "truncated")!.steps).toEqual([[5, 32]]);
    for (const seed of [1, 2])
      expect(read(`entropy-bonus-seed-${seed}`).map(({ rule }) => rule)).not.toContain("lr_high");
  });
});

/** All keys of the config of `cria train`. */
const known = listLeaves(trainConfigSchema);

describe("rules that no run of the embedded policy breaks", () => {
  it("the sampler's probabilities are not the training's", () => {
    const { config, history } = readRun("healthy", "code-game");
    const name = "training/rollout_probs_diff_mean";
    const differing = history.map((step) => (name in step ? { ...step, [name]: 0.05 } : step));
    expect(findProblems(differing, { hasTools: true, config })).toMatchObject([
      { rule: "sampler_differs", sentence: expect.stringContaining("differ by 0.05 in the mean") },
    ]);
  });

  it("much of the evaluated batch is padding", () => {
    const { config, history } = readRun("healthy", "code-game");
    const padded = history.map((step) => ({ ...step, "perf/padding_ratio": 0.3 }));
    expect(findProblems(padded, { hasTools: true, config })).toMatchObject([
      { rule: "padding", severity: "low", sentence: expect.stringMatching(/^30 % of the tokens that updates/) },
    ]);
  });

  describe("with a lag", () => {
    const { config, history } = readRun("healthy", list("healthy")[0]!);
    const lagging = (more: StepMetrics) =>
      history.map((step) => ({ ...step, "training/off_policy/trajectory_staleness/mean": 1, ...more }));
    const tools = (seconds: number): StepMetrics => ({
      "timing_s/agent_loop/generate_sequences/mean": 1,
      "timing_s/agent_loop/tool_calls/mean": seconds,
      "timing_s/agent_loop/interactions/mean": 0,
      "rollout_corr/rollout_is_eff_sample_size": 0.9,
    });
    const find = (more: StepMetrics) => findProblems(lagging(more), { hasTools: true, config });

    it("the lag hides nothing because nothing waits; it does if conversations wait, or workers hold them", () => {
      expect(find(tools(0.05))).toMatchObject([
        { rule: "idle_lag", severity: "low", sentence: expect.stringMatching(/waits 0\.05 s for tools/) },
      ]);
      expect(find(tools(0.5))).toEqual([]);
      expect(find({ ...tools(0.05), "cluster/jobs_elsewhere": 3 })).toEqual([]);
      const without = lagging(tools(0.05)).map((step) => ({
        ...step,
        "training/off_policy/trajectory_staleness/mean": 0,
      }));
      expect(findProblems(without, { hasTools: true, config })).toEqual([]);
    });

    it("all conversations wait for tools at once, with a lag or without", () => {
      const waits = (share: number, staleness: number, more: StepMetrics = {}) =>
        findProblems(
          history.map((step) => ({
            ...step,
            ...tools(0.5),
            "training/off_policy/trajectory_staleness/mean": staleness,
            "timing_s/step": 10,
            "timing_s/wall/waiting_for_tools": 10 * share,
            ...more,
          })),
          { hasTools: true, config },
        );
      expect(waits(0.3, 0)).toMatchObject([
        {
          rule: "idle_cores",
          severity: "low",
          sentence: expect.stringMatching(/^For 30 % of the time/),
          keys: expect.arrayContaining(["trainer.v1.trainer_mode"]),
        },
      ]);
      expect(waits(0.3, 1)).toMatchObject([
        { rule: "idle_cores", keys: expect.arrayContaining(["actor_rollout_ref.rollout.max_num_seqs"]) },
      ]);
      expect(waits(0.1, 0)).toEqual([]);
      expect(waits(0.3, 0, { "cluster/jobs_elsewhere": 3 })).toEqual([]);
    });

    it("the policy has moved away from its conversations", () => {
      const old = { ...tools(0.5), "rollout_corr/rollout_is_eff_sample_size": 0.3 };
      expect(find(old)).toMatchObject([
        { rule: "stale_lag", severity: "medium", sentence: expect.stringMatching(/leave 30 % of the samples/) },
      ]);
    });
  });

  it("the KL to the reference, or that of the updates, is out of hand", () => {
    const { config, history } = readRun("healthy", "code-game");
    const far = history.map((step) => ({ ...step, "actor/kl_loss": 2.5, "actor/ppo_kl": 0.3 }));
    expect(findProblems(far, { hasTools: true, config })).toMatchObject([
      {
        rule: "kl_high",
        severity: "medium",
        sentence: expect.stringMatching(/KL of 0\.3, and the KL to the reference is 2\.5 a token/),
      },
    ]);
  });

  it("updates do not move the policy, at any learning rate", () => {
    const { history } = readRun("ailing", "lr-div-1000");
    const config = { actor_rollout_ref: { actor: { optim: { lr: 1e-4 } } } };
    expect(findProblems(history, { hasTools: true, config })).toMatchObject([
      {
        rule: "lr_low",
        sentence: expect.stringMatching(/at a learning rate of 0\.0001 the updates .* \(by a KL of \d/),
      },
    ]);
    const unmeasured = history.map(({ "actor/update_kl": _, ...step }) => step);
    expect(findProblems(unmeasured, { hasTools: true, config })).toEqual([]);
  });

  it("a worker's results are not those of its class, however long ago", () => {
    const { config, history } = readRun("healthy", "code-game");
    const audited = history.map((step, i) => ({
      ...step,
      "cluster/workers": 3,
      "cluster/audits": 2,
      "cluster/audits_failed": i === 3 ? 1 : 0,
    }));
    const [found, ...others] = findProblems(audited, { hasTools: true, config });
    expect(others).toEqual([]);
    const said = audited.filter((step) => "rollout/kept" in step).length;
    expect(found).toMatchObject({ rule: "audit_failed", severity: "high" });
    expect(found!.sentence).toContain(`1 of ${2 * said} audits failed`);
    for (const key of found!.keys) expect(known, key).toContain(key);
    const passed = audited.map((step) => ({ ...step, "cluster/audits_failed": 0 }));
    expect(findProblems(passed, { hasTools: true, config })).toEqual([]);
  });

  it("jobs are begun again in most steps; now and then, or of very many, is nothing", () => {
    const { config, history } = readRun("healthy", "code-game");
    const find = (again: (step: number) => number, jobs = 100) => {
      const lines = history.map((step, i) => ({
        ...step,
        "cluster/jobs_elsewhere": jobs,
        "cluster/redelivered": again(i),
      }));
      return findProblems(lines, { hasTools: true, config });
    };
    const last = history.length - 1;
    const [found, ...others] = find((i) => (i === last ? 0 : 10));
    expect(others).toEqual([]);
    expect(found).toMatchObject({
      rule: "redelivered",
      severity: "medium",
      sentence: expect.stringMatching(/^In steps \d+ to \d+ jobs were begun again, 8\.0 % of those that workers did/),
    });
    for (const key of found!.keys) expect(known, key).toContain(key);
    expect(find((i) => (i > last - 2 ? 0 : 10))).toEqual([]);
    expect(find(() => 1)).toEqual([]);
    expect(find(() => 0)).toEqual([]);
  });

  it.each<[string, StepMetrics, RegExp, string | null]>([
    ["environment", { "rollout/kept": 0, "rollout/failed_ratio": 1 }, /100 % of the conversations fail/, "failed"],
    ["no_calls", { "tool_call_counts/mean": 0 }, /never calls a tool/, null],
    [
      "no_reward",
      { "critic/score/min": -1, "critic/score/mean": -0.5 },
      /no conversation is given a reward above 0/,
      null,
    ],
    ["no_spread", { "critic/score/max": 1, "critic/score/mean": 0.5 }, /too much alike/, null],
  ])("%s: %j", (rule, metrics, cause, filter) => {
    const [problem] = findProblems(makeRun(metrics), options);
    expect(problem).toMatchObject({ rule, severity: "high", evidence: [{ dump: "5", filter, conversations: [] }] });
    expect(problem!.sentence).toMatch(/^In steps 1 to 5 no conversation .*; likely because /);
    expect(problem!.sentence).toMatch(cause);
  });
});

describe("runs without a learning signal", () => {
  it("the cause that explains most comes first; the others follow", () => {
    const run = makeRun({ "agent_loop/tool_unknown_tool/mean": 0.2, "agent_loop/tool_invalid_call/mean": 0.6 });
    expect(findProblems(run, options).map(({ rule }) => rule)).toEqual(["invalid_call", "unknown_tool", "no_reward"]);
  });

  it("greedy answers are right and sampled ones are not: sample cooler", () => {
    const validated = [{ "training/global_step": 0, "val-core/desk/reward/mean@1": 0.25 }, ...makeRun()];
    const [found] = findProblems(validated, options);
    expect(found).toMatchObject({ rule: "sampled_worse", keys: ["actor_rollout_ref.rollout.temperature"] });
    expect(found!.sentence).toMatch(/likeliest token, on 25 % of the held-out rows, .* at a temperature of 1\.$/);
    expect(found!.remedy).toMatch(/temperature 0\.5\).* \(cria sft\)\.$/);
    const rules = (more: object) => findProblems(validated, { ...options, ...more }).map(({ rule }) => rule);
    const sampled = { actor_rollout_ref: { rollout: { val_kwargs: { do_sample: true } } } };
    expect(rules({ config: sampled })).toEqual(["no_reward"]);
    // It could do more, and has broken.
    const broken = [
      ...validated.slice(0, 2),
      silent(1, { ...learning, "critic/score/mean": 0.4, "critic/score/max": 1 }),
    ];
    expect(findProblems([...broken, ...makeRun()], options).map(({ rule }) => rule)).not.toContain("sampled_worse");
  });

  it("a run that began with an sft is not sent back there, but told how far to go on", () => {
    const run = makeRun({ "response_length/mean": 40, "agent_loop/tool_invalid_call/mean": 0.8 });
    const remedies = (loss: number) =>
      findProblems(run, { ...options, beginning: { path: "runs/cria/sft", steps: 64, loss } }).map(
        ({ remedy }) => remedy,
      );
    expect(findProblems(run, options).every(({ remedy }) => remedy.includes("first (cria sft)"))).toBe(true);
    for (const remedy of remedies(1.5)) {
      expect(remedy).toMatch(
        /after 64 steps at a loss of 1\.5 a token, and at 0\.075 one in twenty conversations of 40 tokens/,
      );
      expect(remedy).not.toContain("first (cria sft)");
    }
    for (const remedy of remedies(0.05)) expect(remedy).toMatch(/at a loss of 0\.05 a token, which is low/);
  });

  it("the embedded policy is beyond its few words there", () => {
    const find = (path: string) =>
      findProblems(makeRun(), { ...options, config: { actor_rollout_ref: { model: { path } } } }).map(
        ({ rule }) => rule,
      );
    expect(find("models/cria-tiny.gguf")).toEqual(["no_reward", "toy_policy"]);
    expect(find("models/not-cria-tiny.gguf")).toEqual(["no_reward"]);
  });

  it("state their common part once", () => {
    const run = makeRun({ "agent_loop/tool_unknown_tool/mean": 0.2, "agent_loop/tool_invalid_call/mean": 0.6 });
    const [first, ...others] = findProblems(run, options).map(({ sentence }) => sentence);
    expect(first).toMatch(/^In steps 1 to 5 no .*; likely because 60 % of the tool calls cannot be read/);
    expect(others[0]).toMatch(/^20 % of the tool calls name/);
    expect(others[1]).toMatch(/^Every conversation is given the same reward, 0\.$/);
  });

  it("are judged after five steps, and after fewer where the run has no more", () => {
    expect(findProblems(makeRun({}, 4), options)).toEqual([]);
    expect(findProblems(makeRun({}, 4), { ...options, fewest: 3 })).toHaveLength(1);
    // A validation before training is no step.
    expect(findProblems([{ "training/global_step": 0, "val-core/x": 1 }, ...makeRun({}, 4)], options)).toEqual([]);
  });

  it("a lucky conversation does not silence the rules, two do; nor does an estimator without groups confuse them", () => {
    expect(findProblems([...makeRun({}, 4), silent(5, learning)], options)[0]!.sentence).toMatch(
      /^In 4 of steps 1 to 5/,
    );
    expect(findProblems([...makeRun({}, 3), silent(4, learning), silent(5, learning)], options)).toEqual([]);
    const { "critic/rewards/frac_zero_std": _, ...alone } = silent(1, learning);
    expect(findProblems(Array(5).fill(alone), options)).toEqual([]);
  });

  it("have only been judged again, perhaps", () => {
    expect(findProblems(makeRun({ "rescore/changed_ratio": 0 }), options)).toEqual([]);
  });

  it("have learned all there is, perhaps", () => {
    const solved = { "critic/score/max": 1, "critic/score/min": 1, "critic/score/mean": 1, "reward/score/mean": 1 };
    const begin = Array.from({ length: 5 }, (_, i) => silent(i + 1, { ...learning, "critic/score/mean": 0.4 }));
    expect(findProblems([...begin, ...makeRun(solved)], options)).toEqual([]);
    expect(findProblems(makeRun(solved), options)).toHaveLength(1);
  });
});

const renderPage = () => `# Rules of the coach

<!-- Written from the rules (packages/trainer/src/diagnose): edit those. -->

[When it does not learn](coach.md) explains findings, and what "nothing is learned" means here.

${describeRules()}
`;

describe("the rules", () => {
  it("have names of their own", () => {
    expect(new Set(rules.map(({ name }) => name)).size).toBe(rules.length);
  });

  it("stand in docs/coach-rules.md (vitest -u writes it)", async () => {
    await expect(renderPage()).toMatchFileSnapshot(join(docs, "coach-rules.md"));
  });

  it("are all that docs/coach.md names", () => {
    const named = [...readFileSync(join(docs, "coach.md"), "utf8").matchAll(/`([a-z]+(?:_[a-z]+)+)`/g)];
    expect(named.length).toBeGreaterThan(10);
    for (const [, name] of named) expect(rules.map((rule) => rule.name)).toContain(name);
  });

  it("have a test each", () => {
    const here = readFileSync(import.meta.filename, "utf8");
    for (const { name } of rules) expect(here, name).toMatch(new RegExp(`"${name}"`));
  });
});
