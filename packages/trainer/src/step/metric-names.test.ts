import { readFileSync } from "node:fs";
import { totalmem } from "node:os";
import { join } from "node:path";
import { TinyModels } from "@cria/engine/testing";
import { loopCounters } from "@cria/rollout";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { metricTable } from "../metrics/metric-table.js";
import { runTraining } from "../run/run-training.js";
import { expandBraces } from "../testing/expand-braces.js";
import { type FakeTraining, openFakeTraining } from "../testing/fake-training.js";
import { openTinyTraining } from "../testing/tiny-training.js";
import { validate } from "../validation/validate.js";
import { runTrainingStep } from "./training-step.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

/** The field's metric names, which users' dashboards expect. */
const NAMES = `
critic/{score,rewards,advantages,returns,values}/{mean,max,min}
critic/{vf_loss,vf_clipfrac,vf_explained_var,vpred_mean,grad_norm} response_length_non_aborted/{mean,max,min,clip_ratio}
perf/{max_memory_allocated_gb,max_memory_reserved_gb,cpu_memory_used_gb} training/rollout_probs_diff_valid val-aux/num_turns/{mean,max,min}
rollout_corr/{training_ppl,rollout_ppl,log_ppl_diff,log_ppl_abs_diff,ppl_ratio,chi2_token,chi2_seq}
rollout_corr/rollout_is_{mean,std,max,min,ratio_fraction_high,ratio_fraction_low}
rollout_corr/rollout_is_seq_{mean,std,max,min,max_deviation,fraction_high,fraction_low}
actor/{pg_loss,kl_loss,kl_coef,entropy,pg_clipfrac,pg_clipfrac_lower,ppo_kl,update_kl,grad_norm,lr}
actor/{reward_kl_penalty,reward_kl_penalty_coeff} response_length/{mean,max,min,clip_ratio}
prompt_length/{mean,max,min,clip_ratio} response/aborted_ratio num_turns/{mean,max,min} tool_call_counts/{mean,max,min}
timing_s/{gen,reward,old_log_prob,ref,values,adv,update_critic,update_actor,update_kl,testing,save_checkpoint,step}
timing_s/wall/{decoding,waiting_for_tools,waiting_for_groups,scoring,training,other}
timing_s/agent_loop/{generate_sequences,tool_calls}/{mean,max,min}
timing_per_token_ms/{gen,ref,values,adv,update_critic,update_actor} perf/{throughput,time_per_step,total_num_tokens}
training/{global_step,epoch} training/{rollout_probs_diff_max,rollout_probs_diff_mean,rollout_probs_diff_std}
training/rollout_actor_probs_pearson_corr rollout_corr/{kl,k3_kl,rollout_is_mean,rollout_is_eff_sample_size}
engine/{prefill_tokens,reused_tokens,decode_tokens}
val-core/test/acc/{mean@4,best@4/mean,worst@4/mean,maj@4/mean}`;

/** The names of the table, from which docs/metrics.md is written; `<x>` matches any text. */
function listDocumented(): { name: string; pattern: RegExp }[] {
  const names = metricTable.flatMap(({ metrics }) => metrics.map(({ name }) => name));
  return names.flatMap(expandBraces).map((name) => {
    const literal = name.split(/<[a-z]+>/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    return { name, pattern: new RegExp(`^${literal.join("(.+)")}$`) };
  });
}

/** Rows for metrics of users' code. They match every name, so they must not document a built-in metric. */
const USERS = ["critic/<name>", "actor/<name>", "agent_loop/<counter>/mean"];
const documented = listDocumented().filter(({ name }) => !USERS.includes(name));
const listUndocumented = (names: readonly string[]) =>
  names.filter((name) => !documented.some(({ pattern }) => pattern.test(name)));

/** Metric names written by the runs of this file. */
const written = new Set<string>();

it("a step with everything on has every metric of the contract", async () => {
  const training = await openTinyTraining(models, {
    reward: "return { score: text.length % 3, acc: text.length % 2, pred: text[0] ?? '' };",
    algorithm: { adv_estimator: "gae", use_kl_in_reward: true, rollout_correction: { rollout_is: "token" } },
    actor: { use_kl_loss: true, update_kl_ratio: 0.5, old_log_prob: "separate" },
    rollout: { val_kwargs: { n: 4, do_sample: true, top_k: 5 } },
    data: { val_files: "rows.jsonl" },
    trainer: { total_training_steps: 1, val_before_train: false },
  });
  const { path } = await runTraining(training, {
    configFolder: training.folder,
    trackers: [],
  });
  const metrics = JSON.parse(readFileSync(join(path, "metrics.jsonl"), "utf8")) as Record<string, number>;
  const names = NAMES.trim().split(/\s+/).flatMap(expandBraces);
  expect(names.length).toBeGreaterThan(80);
  expect(names.filter((name) => !Number.isFinite(metrics[name]))).toEqual([]);
  expect(listUndocumented(Object.keys(metrics))).toEqual([]);
  // In GiB: at least Node's own memory, at most the larger of the current and the earlier resident size.
  const mostGb = metrics["perf/max_memory_reserved_gb"]!;
  expect(mostGb).toBeGreaterThan(0.03);
  expect(mostGb).toBeGreaterThan(0.9 * metrics["perf/cpu_memory_used_gb"]!);
  expect(mostGb).toBeLessThan(totalmem() / 2 ** 30);
  expect(metrics["perf/max_memory_allocated_gb"]).toBe(mostGb);
  for (const name of Object.keys(metrics)) written.add(name);
});

const call = (name: string, parameters: unknown) =>
  `<tool_call>\n${JSON.stringify({ name, arguments: parameters })}\n</tool_call>`;
const sum = call("calculator", { expression: "1 + 1" });
/** First message of the model in each conversation of a group; the model then answers, and then ends. */
const OPENINGS = [
  sum,
  // Exceeds the limit of one call per turn.
  sum + sum,
  call("calculator", { expression: "1 +" }),
  call("oracle", {}),
  call("calculator", { wrong: 1 }),
  "<tool_call>\nnonsense\n</tool_call>",
  call("broken", {}),
  "2",
];
const ENVIRONMENT = `
import { BaseInteraction, BaseTool, defineToolSchema } from "@cria/tools";
import { z } from "zod";
export class Broken extends BaseTool {
  constructor() { super(defineToolSchema("broken", "Throws.", z.object({}))); }
  async execute() { throw new Error("broken"); }
}
export class Boastful extends BaseTool {
  constructor() { super(defineToolSchema("boastful", "Counts.", z.object({}))); }
  async execute() { return { response: { text: "ok" }, reward: 0, metrics: { tool_calls: 1000, failed: 1 } }; }
}
export class Once extends BaseInteraction {
  name = "once";
  async startInteraction() {}
  async generateResponse(id, messages) {
    return { shouldTerminate: messages.at(-1).content === "end", content: "more?", score: 0, data: { mood: 3, tool_errors: 50 } };
  }
  async finalizeInteraction() {}
}`;

describe("a step with tools and an interaction", () => {
  let metrics: Record<string, number>;
  let validated: Record<string, number>;
  let training: FakeTraining;
  let next = 0;
  beforeAll(async () => {
    training = await openFakeTraining(models, {
      prompts: ["a"],
      reward: "return { score: 1, mine: 2 };",
      images: true,
      reply: ({ turn }) => [OPENINGS[turn === 0 ? next++ % OPENINGS.length : 0]!, call("boastful", {}), "end"][turn]!,
      files: {
        "mine.ts": ENVIRONMENT,
        "tools.yaml":
          'tools: [{ class_name: "@cria/tools#CalculatorTool" }, { class_name: "./mine.ts#Broken" }, { class_name: "./mine.ts#Boastful" }]',
        "interactions.yaml": 'interaction: [{ name: once, class_name: "./mine.ts#Once" }]',
      },
      row: { extra_info: { index: 0, interaction_kwargs: { name: "once" } } },
      overrides: [
        `actor_rollout_ref.rollout.n=${OPENINGS.length}`,
        "actor_rollout_ref.rollout.multi_turn.tool_config_path={folder}/tools.yaml",
        "actor_rollout_ref.rollout.multi_turn.interaction_config_path={folder}/interactions.yaml",
        "actor_rollout_ref.actor.skip_zero_advantage=false",
        "algorithm.adv_estimator=gigpo",
        "data.val_files={folder}/rows.jsonl",
      ],
    });
    metrics = (await runTrainingStep(training, { rows: training.trainRows, step: 1, epoch: 0 })).metrics;
    validated = (await validate(training, { temperature: 1, n: OPENINGS.length, step: 1 })).metrics;
    for (const name of Object.keys({ ...metrics, ...validated })) written.add(name);
  });
  afterAll(() => training.dispose());

  it("has every counter of the loop, the zeros too", () => {
    const n = OPENINGS.length;
    for (const name of loopCounters.filter((name) => name !== "tool_calls"))
      expect(metrics[`agent_loop/${name}/mean`], name).toBeGreaterThanOrEqual(0);
    const counts = {
      tool_errors: 4,
      tool_unknown_tool: 1,
      tool_invalid_arguments: 1,
      tool_invalid_call: 1,
      tool_exception: 1,
      too_many_calls: 1,
      tool_timeout: 0,
      tokenization_mismatch: 0,
      tokenization_drift: 0,
      tokenization_unchecked: 0,
    };
    for (const [name, count] of Object.entries(counts))
      expect(metrics[`agent_loop/${name}/mean`], name).toBe(count / n);
    // The first message has one call, two, or none; then one more follows.
    expect(metrics["tool_call_counts/mean"]).toBe((8 + 8) / n);
    expect(metrics["agent_loop/tool_error_rate"]).toBe(4 / 16);
    expect(metrics["critic/rewards/frac_zero_std"]).toBe(1);
  });

  it("has the metrics of tools and interactions under their names, without hiding others", () => {
    // The calculator answered three calls; one of them was no valid expression.
    expect(metrics["agent_loop/tool_answers/calculator/mean"]).toBe(3 / 8);
    expect(metrics["tool/calculator/invalid_expression/mean"]).toBe(1 / 3);
    expect(metrics["tool/boastful/tool_calls/mean"]).toBe(1000);
    expect(metrics["tool/boastful/failed/mean"]).toBe(1);
    expect(metrics["interaction/once/mood/mean"]).toBe(3);
    expect(metrics["interaction/once/tool_errors/mean"]).toBe(50);
    // "2" is no call, and is answered by the interaction too.
    expect(metrics["agent_loop/interaction_turns/mean"]).toBe(9 / 8);
    expect(metrics["reward_extra/mine/mean"]).toBe(2);
    expect(metrics["rollout/failed"]).toBe(0);
  });

  it("has the same of a validation", () => {
    for (const name of ["agent_loop/tool_errors/mean", "tool/calculator/invalid_expression/mean", "num_turns/mean"])
      expect(validated[`val-aux/${name}`]).toBe(metrics[name]);
  });

  it("has a row in the table for every name", () => {
    expect(Object.keys(metrics).length).toBeGreaterThan(100);
    expect(listUndocumented(Object.keys({ ...metrics, ...validated }))).toEqual([]);
    expect(listUndocumented(["agent_loop/tool_oops/mean", "actor/oops"])).toHaveLength(2);
  });
});

it("the table names each metric once", () => {
  const names = listDocumented().map(({ name }) => name);
  expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
});

it("the table explains only metrics that a run writes", () => {
  // Tests in other files cover these: dynamic sampling, every kind of rollout correction, supervised fine-tuning, another
  // reward, agents, roles of self-play, trees and measured turns, several judges, many machines, steps sampled ahead, replayed groups.
  const others =
    /^(cluster\/.*|rescore\/.*|critic\/(rae\/.*|turn_values\/mean)|role\/.*|tree\/.*|agent_loop\/continuation.*|training\/(off_policy\/.*|old_log_prob_diff_max)|replay\/.*|distillation\/.*|actor\/(observation_loss|demonstration_loss|loss_terms\/.*)|timing_(s|per_token_ms)\/teacher|agent_loop\/chat_.*|reward_part\/.*|train\/(num_gen_batches|pf_ppo_kept_ratio|loss|loss_tokens|grad_norm|lr)|val\/.*|rollout_corr\/(rollout_rs_|rollout_is_(batch|veto|catastrophic)).*|val-core\/.*reward\/.*)$/;
  const unseen = documented.filter(({ pattern }) => ![...written].some((name) => pattern.test(name)));
  expect(unseen.map(({ name }) => name).filter((name) => !others.test(name))).toEqual([]);
});
