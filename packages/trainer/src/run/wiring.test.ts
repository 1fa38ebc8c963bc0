import { setMaxListeners } from "node:events";
import { join } from "node:path";
import {
  composePolicyLoss,
  composeValueLoss,
  defaultPolicyLoss,
  type PolicyLossOptions,
  parseRejectionRules,
  type ValueLossOptions,
} from "@cria/algorithms";
import type { LossFunction, TrainSequence, ValueLossFunction } from "@cria/core";
import { hashSeed } from "@cria/core";
import { FakeTokenizer, FakeValueEngine } from "@cria/core/testing";
import { makeTinyProjector, TinyModels } from "@cria/engine/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { importCorrection } from "../config/import/correction.js";
import { importDistillation, importTeacherTerm } from "../config/import/distillation.js";
import { importLoss } from "../config/import/loss.js";
import { loadConfig } from "../config/load-config.js";
import { imageKeys, visionKeys } from "../config/sections/vision.js";
import { trainConfigSchema } from "../config/train-config.js";
import { loadConfiguredModel } from "../policy/load-configured-model.js";
import { runTrainingStep } from "../step/training-step.js";
import { type FakeTraining, openFakeTraining } from "../testing/fake-training.js";
import { writeTinyRun } from "../testing/tiny-training.js";
import { runValidation } from "../validation/run-validation.js";

/**
 * Compares a config with the arguments that the engines receive: in a step of a scripted model, on three prompts with
 * two samples each, a tool call and an answer in each conversation, a critic, a reference, two epochs of two
 * mini-batches; then in a validation.
 */
const models = new TinyModels();
afterAll(() => models.cleanUp());

const BASE = [
  "algorithm.adv_estimator=gae",
  "actor_rollout_ref.actor.use_kl_loss=true",
  "actor_rollout_ref.actor.ppo_epochs=2",
  "actor_rollout_ref.actor.ppo_mini_batch_size=2",
  "actor_rollout_ref.actor.shuffle=false",
  "actor_rollout_ref.actor.update_kl_ratio=0",
  "critic.shuffle=false",
  "actor_rollout_ref.rollout.n=2",
  "actor_rollout_ref.rollout.multi_turn.tool_config_path={folder}/tools.yaml",
  "data.val_files={folder}/rows.jsonl",
  "trainer.total_training_steps=10",
];
const STEP = 2;
const CALL = '<tool_call>\n{"name": "calculator", "arguments": {"expression": "1 + 1"}}\n</tool_call>';
const ANSWER = "2";
/** Number of sampled tokens of each conversation, including both ends of turn. */
const SAMPLED = new FakeTokenizer().tokenize(CALL + ANSWER).length + 2;
const signal = new AbortController().signal;
setMaxListeners(0, signal);

const open = (overrides: readonly string[] = []) =>
  openFakeTraining(models, {
    prompts: ["a", "bb", "ccc"],
    reward: "return truth.length;",
    reply: ({ turn }) => (turn === 0 ? CALL : ANSWER),
    files: { "tools.yaml": 'tools: [{ class_name: "@cria/tools#CalculatorTool" }]' },
    overrides: [...BASE, ...overrides],
    signal,
  });

type Arguments = Record<string, unknown>;

/** Records, by "<call>.<argument>", the different values of each argument, the number of calls, and their rows. */
async function observe(overrides: readonly string[] = []): Promise<Arguments> {
  const training = await open(overrides);
  try {
    const { trajectories } = await runTrainingStep(training, { rows: training.trainRows, step: STEP, epoch: 0 });
    const rowOf = ({ tokenIds }: { tokenIds: ArrayLike<number> }) =>
      trajectories.find((t) => t.tokenIds.join() === Array.from(tokenIds).join())!.rowIndex;
    const seen = describeCalls(training, rowOf);
    training.calls.generate.length = 0;
    await runValidation(training, { step: 1, file: `${training.folder}/validation.jsonl` });
    const validated = describeCalls({ ...training, calls: { ...training.calls, score: [], train: [] } }, rowOf);
    for (const [name, value] of Object.entries(validated))
      if (name.startsWith("generate.")) seen[name.replace("generate", "validate")] = value;
    return seen;
  } finally {
    await training.dispose();
  }
}

function describeCalls({ calls }: FakeTraining, rowOf: (sequence: TrainSequence) => number): Arguments {
  const values: Record<string, unknown[]> = {};
  const add = (name: string, value: unknown) => {
    values[name] ??= [];
    const known = values[name];
    const text = JSON.stringify(value);
    if (!known.some((other) => JSON.stringify(other) === text)) known.push(value);
  };
  /** Also records arguments that only some calls of a kind have; the other calls have undefined. */
  const addAll = (call: string, list: readonly (object | null | undefined)[]) => {
    const names = new Set(list.flatMap((given) => Object.keys(given ?? {})));
    for (const given of list as readonly (Arguments | null | undefined)[])
      for (const name of names) add(`${call}.${name}`, given?.[name] instanceof AbortSignal ? "signal" : given?.[name]);
  };
  const seen: Arguments = {};
  addAll("generate", calls.generate);
  seen["generate.calls"] = calls.generate.length;
  for (const [sequences] of calls.score) add("score.sequences", sequences.length);
  addAll(
    "score",
    calls.score.map(([, options]) => options),
  );
  seen["score.calls"] = calls.score.length;
  for (const [sequences] of calls.values) add("values.sequences", sequences.length);
  addAll(
    "values",
    calls.values.map(([, options]) => options),
  );
  const updates = { train: calls.train, critic: calls.trainCritic };
  for (const [kind, list] of Object.entries(updates)) {
    if (list.length > 0) seen[`${kind}.rows`] = list.map(([batch]) => batch.map(rowOf));
    addAll(
      kind,
      list.map(([, , optimizer]) => optimizer),
    );
    addAll(
      kind,
      list.map(([, , , options]) => options),
    );
    for (const [batch] of list) {
      for (const { lossMask, columns } of batch)
        for (const [name, column] of Object.entries({ lossMask, ...columns }))
          add(`${kind}.columns.${name}`, Array.from(column).join());
    }
  }
  for (const list of Object.values(values)) list.sort();
  // A loss is a function, so record its results for tokens with known values.
  if (calls.train[0]) values["train.loss"] = probePolicyLoss(calls.train[0][1]);
  if (calls.trainCritic[0]) values["critic.loss"] = probeValueLoss(calls.trainCritic[0][1]);
  return { ...seen, ...values };
}

const TOKENS = {
  sequenceIndices: Int32Array.of(0, 1),
  offsets: Int32Array.of(0, 3, 5),
  // Totals of the first mini-batch, which the trainer substitutes: two prompts with two samples each.
  totals: { tokens: 4 * SAMPLED, sequences: 4 },
};
const column = (...values: number[]) => Float32Array.from(values);

function probePolicyLoss(loss: LossFunction): unknown[] {
  const {
    loss: value,
    dLogprobs,
    dEntropy,
  } = loss({
    ...TOKENS,
    logprobs: column(-1, -0.3, -2, -0.5, -1.5),
    entropy: column(1, 2, 3, 1, 2),
    columns: {
      advantages: column(1, 1, -2, 0.5, -1),
      oldLogprobs: column(-1.25, -0.7, -0.5, -0.45, -3.5),
      refLogprobs: column(-1.1, -0.2, -2.2, -0.9, -1.4),
    },
  });
  return [value, [...dLogprobs], [...(dEntropy ?? [])]];
}

function probeValueLoss(loss: ValueLossFunction): unknown[] {
  const { loss: value, dValues } = loss({
    ...TOKENS,
    values: column(0, 1, 2, -1, 0.5),
    columns: { oldValues: column(0, 0.25, 2.5, 0, 0.5), returns: column(1, -1, 1, 2, 0) },
  });
  return [value, [...dValues]];
}

const policyLoss: PolicyLossOptions = {
  ...defaultPolicyLoss,
  lossScaleFactor: 1000,
  kl: { coefficient: 0.001, type: "low_var_kl" },
};
const valueLoss: ValueLossOptions = { cliprangeValue: 0.5, lossAggMode: "token-mean", lossScaleFactor: 1000 };
const lossOf = (options: Partial<PolicyLossOptions>) => ({
  "train.loss": probePolicyLoss(composePolicyLoss({ ...policyLoss, ...options })),
});
const criticLossOf = (options: Partial<ValueLossOptions>) => ({
  "critic.loss": probeValueLoss(composeValueLoss({ ...valueLoss, ...options })),
});

/** The value differs from the base's; other tests check the value itself. */
const CHANGED = Symbol("changed");
/** No call has this argument, or there is no call. */
const GONE = Symbol("gone");
const ACTOR = "actor_rollout_ref.actor";
const ROLLOUT = "actor_rollout_ref.rollout";
const samples = (of: number) => [0, 1, 2].map((row) => Array(of).fill(row) as number[]);
const [row0, row1, row2] = samples(2) as [number[], number[], number[]];
const cosine = (progress: number, least = 0, cycles = 0.5) =>
  (1 + least) / 2 + ((1 - least) / 2) * Math.cos(2 * Math.PI * cycles * progress);

/** Rows for schedules at step 2 of 10, by the formulas in learning-rate.ts. */
const schedules = (section: string, lr: number): Row[] => {
  const argument = section === "critic" ? "critic.learningRate" : "train.learningRate";
  const key = `${section}.optim`;
  const falling = `${key}.lr_scheduler_type=cosine`;
  return [
    [[`${key}.lr=0.5`], { [argument]: [0.5] }],
    [[`${key}.lr_warmup_steps=4`], { [argument]: [lr / 2] }],
    [[`${key}.lr_warmup_steps_ratio=0.4`], { [argument]: [lr / 2] }],
    [[falling], { [argument]: [lr * cosine(0.1)] }],
    [[falling, `${key}.min_lr_ratio=0.5`], { [argument]: [lr * cosine(0.1, 0.5)] }],
    [[falling, `${key}.num_cycles=1`], { [argument]: [lr * cosine(0.1, 0, 1)] }],
  ];
};
const optimizers = (section: string, call: string): Row[] => [
  [[`${section}.optim.betas=[0.5,0.6]`], { [`${call}.betas`]: [[0.5, 0.6]] }],
  [[`${section}.optim.weight_decay=0.3`], { [`${call}.weightDecay`]: [0.3] }],
  [[`${section}.grad_clip=0.25`], { [`${call}.maxGradNorm`]: [0.25] }],
  [[`${section}.ppo_max_token_len=333`], { [`${call}.microBatchTokens`]: [333] }],
];

/** Overridden keys, and every argument that differs as a result. */
type Row = [overrides: string[], changes: Arguments];
const TABLE: Row[] = [
  [
    [`${ROLLOUT}.temperature=0.7`],
    { "generate.temperature": [0.7], "score.temperature": [0.7], "train.temperature": [0.7] },
  ],
  // Half of the six conversations are scored again after the updates, without a signal, because a started step is
  // finished.
  [
    [`${ACTOR}.update_kl_ratio=0.5`],
    { "score.calls": 3, "score.sequences": [3, 6], "score.signal": ["signal", undefined] },
  ],
  [[`${ROLLOUT}.top_p=0.9`], { "generate.topP": [0.9] }],
  [[`${ROLLOUT}.top_k=7`], { "generate.topK": [7] }],
  ...(["generate", "validate"] as const).map((call): Row => {
    const key = call === "generate" ? "" : "val_kwargs.";
    return [[`${ROLLOUT}.${key}min_p=0.2`], { [`${call}.minP`]: [0.2] }];
  }),
  [[`${ROLLOUT}.stop=Q`], { "generate.stopStrings": [["Q"]], "validate.stopStrings": [["Q"]] }],
  [[`${ROLLOUT}.max_tokens_per_turn=100`], { "generate.maxTokens": [100], "validate.maxTokens": [100] }],
  [[`${ROLLOUT}.seed=5`], { "generate.seed": CHANGED }],
  ...[`${ROLLOUT}.response_length=500`, "data.max_response_length=500"].map((override): Row => {
    const limits = { "generate.maxTokens": CHANGED, "validate.maxTokens": CHANGED };
    return [[override], limits];
  }),
  ...[`${ROLLOUT}.n=3`, `${ROLLOUT}.multi_turn.num_repeat_rollouts=3`].map((override): Row => {
    const [a, b, c] = samples(3) as [number[], number[], number[]];
    const rows = [[...a, ...b], c, [...a, ...b], c];
    const sizes = { "generate.calls": 18, "score.sequences": [9], "values.sequences": [9] };
    // More samples change the means over the batch.
    const means = { "train.columns.advantages": CHANGED, "train.loss": CHANGED, "critic.loss": CHANGED };
    return [[override], { ...sizes, "generate.seed": CHANGED, "train.rows": rows, "critic.rows": rows, ...means }];
  }),

  [[`${ROLLOUT}.val_kwargs.do_sample=true`], { "validate.temperature": [1] }],
  [
    [`${ROLLOUT}.val_kwargs.do_sample=true`, `${ROLLOUT}.val_kwargs.temperature=0.6`],
    { "validate.temperature": [0.6] },
  ],
  [[`${ROLLOUT}.val_kwargs.top_p=0.8`], { "validate.topP": [0.8] }],
  [[`${ROLLOUT}.val_kwargs.top_k=5`], { "validate.topK": [5] }],
  [[`${ROLLOUT}.val_kwargs.n=2`], { "validate.calls": 12, "validate.seed": CHANGED }],

  ...schedules(ACTOR, 1e-2),
  ...optimizers(ACTOR, "train"),
  [
    [`${ACTOR}.ppo_epochs=3`, "critic.ppo_epochs=2"],
    { "train.rows": [[...row0, ...row1], row2, [...row0, ...row1], row2, [...row0, ...row1], row2] },
  ],
  [
    [`${ACTOR}.ppo_mini_batch_size=1`, "critic.ppo_mini_batch_size=2"],
    { "train.rows": [row0, row1, row2, row0, row1, row2], "train.loss": CHANGED },
  ],
  // The critic uses the actor's value if it has none of its own.
  [[`${ACTOR}.ppo_epochs=1`], { "train.rows": [[...row0, ...row1], row2], "critic.rows": [[...row0, ...row1], row2] }],
  [[`${ACTOR}.shuffle=true`], { "train.rows": CHANGED }],
  [[`${ACTOR}.clip_ratio=0.1`], lossOf({ clipRatioLow: 0.1, clipRatioHigh: 0.1 })],
  [[`${ACTOR}.clip_ratio_low=0.1`], lossOf({ clipRatioLow: 0.1 })],
  [[`${ACTOR}.clip_ratio_high=0.1`], lossOf({ clipRatioHigh: 0.1 })],
  [[`${ACTOR}.clip_ratio_c=1.5`], lossOf({ clipRatioC: 1.5 })],
  [[`${ACTOR}.loss_agg_mode=seq-mean-token-sum`], lossOf({ lossAggMode: "seq-mean-token-sum" })],
  [
    [`${ACTOR}.loss_agg_mode=seq-mean-token-sum-norm`, `${ACTOR}.loss_scale_factor=77`],
    lossOf({ lossAggMode: "seq-mean-token-sum-norm", lossScaleFactor: 77 }),
  ],
  [[`${ACTOR}.entropy_coeff=0.01`], lossOf({ entropyCoeff: 0.01 })],
  [[`${ACTOR}.observation_coeff=0.1`], { "train.columns.lossMask": CHANGED, "train.columns.tokenKind": CHANGED }],
  [[`${ACTOR}.kl_loss_coef=0.5`], lossOf({ kl: { coefficient: 0.5, type: "low_var_kl" } })],
  [[`${ACTOR}.kl_loss_type=abs`], lossOf({ kl: { coefficient: 0.001, type: "abs" } })],
  [[`${ACTOR}.policy_loss.loss_mode=sapo`], lossOf({ lossMode: "sapo" })],
  [[`${ACTOR}.policy_loss.loss_mode=sapo`, `${ACTOR}.tau_pos=2`], lossOf({ lossMode: "sapo", tauPos: 2 })],
  [[`${ACTOR}.policy_loss.loss_mode=sapo`, `${ACTOR}.tau_neg=2`], lossOf({ lossMode: "sapo", tauNeg: 2 })],
  [
    [`${ACTOR}.use_kl_loss=false`],
    {
      ...lossOf({ kl: null }),
      "score.calls": 1,
      "score.entropy": [true],
      "score.adapter": GONE,
      "train.columns.refLogprobs": GONE,
    },
  ],

  ...schedules("critic", 1e-3),
  ...optimizers("critic", "critic"),
  [["critic.ppo_epochs=1"], { "critic.rows": [[...row0, ...row1], row2] }],
  [["critic.ppo_mini_batch_size=1"], { "critic.rows": [row0, row1, row2, row0, row1, row2], "critic.loss": CHANGED }],
  [["critic.shuffle=true"], { "critic.rows": CHANGED }],
  [["critic.cliprange_value=0.1"], criticLossOf({ cliprangeValue: 0.1 })],
  [["critic.loss_agg_mode=seq-mean-token-sum"], criticLossOf({ lossAggMode: "seq-mean-token-sum" })],

  [["algorithm.gamma=0.5"], { "train.columns.advantages": CHANGED, "critic.columns.returns": CHANGED }],
  [["algorithm.lam=0.5"], { "train.columns.advantages": CHANGED, "critic.columns.returns": CHANGED }],
  [["algorithm.rollout_correction.rollout_is=token"], { "train.columns.rolloutIsWeights": CHANGED }],
  [
    ["algorithm.rollout_correction.bypass_mode=true"],
    { "score.calls": 1, "score.entropy": GONE, "score.adapter": [false], "train.columns.oldLogprobs": CHANGED },
  ],
  // The actor's first step: the first of four warm-up steps.
  [["trainer.critic_warmup=1", `${ACTOR}.optim.lr_warmup_steps=4`], { "train.learningRate": [1e-2 / 4] }],
];

/** Keys that do not determine an argument of the engines, by the test that covers them. */
const ELSEWHERE: Record<string, string[]> = {
  "the test of the teacher's options below, and step/teachers.test.ts": [
    ...["enabled", "teacher_key"].map((key) => `distillation.${key}`),
    ...Object.keys(trainConfigSchema.shape.distillation.unwrap().shape.distillation_loss.unwrap().shape).map(
      (key) => `distillation.distillation_loss.${key}`,
    ),
  ],
  "step/loss-terms.test.ts": [`${ACTOR}.demonstration_coeff`, `${ACTOR}.loss_weights.key`],
  "step/old-logprobs.test.ts": [`${ACTOR}.old_log_prob`],
  "run/guided.test.ts": ["distillation.guided.share", "distillation.guided.steps"],
  "run/partial-rollout.test.ts": [`${ROLLOUT}.partial_rollout`],
  "load-policy.ts, where the model is loaded": [
    `${ROLLOUT}.prompt_length`,
    `${ROLLOUT}.max_model_len`,
    `${ROLLOUT}.max_num_seqs`,
    `${ROLLOUT}.kv_cache_dtype`,
    `${ROLLOUT}.deterministic`,
    "critic.model.path",
    "critic.model.lora_rank",
    "critic.model.lora_alpha",
    "critic.model.target_modules",
  ],
  "multi-turn-options.test.ts, and the tests of agent loops": [
    ...[`${ROLLOUT}.agent.default_agent_loop`, `${ROLLOUT}.agent.agent_loop_config_path`],
    ...Object.keys(trainConfigSchema.shape.actor_rollout_ref.shape.rollout.unwrap().shape.multi_turn.unwrap().shape)
      .filter((key) => key !== "num_repeat_rollouts")
      .map((key) => `${ROLLOUT}.multi_turn.${key}`),
  ],
  "the tests of options below": [
    ...["clip_cov_ratio", "clip_cov_lb", "clip_cov_ub", "kl_cov_ratio", "ppo_kl_coef", "dro_beta"].map(
      (key) => `${ACTOR}.policy_loss.${key}`,
    ),
    ...["rollout_is_threshold", "rollout_is_batch_normalize", "rollout_rs", "rollout_rs_threshold"].map(
      (key) => `algorithm.rollout_correction.${key}`,
    ),
    "algorithm.rollout_correction.rollout_rs_threshold_lower",
    "algorithm.rollout_correction.rollout_token_veto_threshold",
    "algorithm.rollout_correction.loss_type",
  ],
  "train-agent.test.ts": [...["agent.timeout_s", "agent.max_calls", "branch_credit"].map((key) => `${ROLLOUT}.${key}`)],
  "chat-session.test.ts of @cria/rollout": [`${ROLLOUT}.train_on_constrained_tokens`],
  "self-play.test.ts": ["algorithm.rae_decay"],
  "roles.test.ts": ["actor_rollout_ref.model.lora_roles"],
  "trees.test.ts": [
    ...["tree.expansions", "tree.rounds"].map((key) => `${ROLLOUT}.${key}`),
    "algorithm.vine.continuations",
    "algorithm.vine.max_tokens",
  ],
  "replayed-groups.test.ts": ["size", "max_age", "share", "sampling"].map((key) => `algorithm.replay.${key}`),
  "failures.test.ts": [`${ROLLOUT}.on_failure`],
  "algorithms.test.ts, on a real model": [
    `${ACTOR}.skip_zero_advantage`,
    "algorithm.adv_estimator",
    "algorithm.norm_adv_by_std_in_grpo",
    "algorithm.use_kl_in_reward",
    "algorithm.kl_penalty",
    ...["type", "kl_coef", "target_kl", "horizon"].map((key) => `algorithm.kl_ctrl.${key}`),
    ...["enable", "metric", "max_num_gen_batches", "min_spread", "variance_share"].map(
      (key) => `algorithm.filter_groups.${key}`,
    ),
    ...["gdpo_reward_keys", "gdpo_reward_weights", "use_pf_ppo"].map((key) => `algorithm.${key}`),
    ...["reweight_method", "weight_pow"].map((key) => `algorithm.pf_ppo.${key}`),
    ...["gigpo.mode", "gigpo.step_advantage_w", "turn_advantage_coef"].map((key) => `algorithm.${key}`),
  ],
  "the test of projectors below": Object.keys(visionKeys).map((key) => `actor_rollout_ref.model.${key}`),
  "image-runs.test.ts": ["image_key", "fetch_images", "image_max_bytes", "image_max_pixels"].map(
    (key) => `data.${key}`,
  ),
};

let base: Arguments;
beforeAll(async () => {
  base = await observe();
});

describe("every argument of the engines", () => {
  it("equals the base's config", () => {
    const rows = [[...row0, ...row1], row2, [...row0, ...row1], row2];
    const optimizer = { betas: [[0.9, 0.999]], weightDecay: [0], maxGradNorm: [1], microBatchTokens: [undefined] };
    const name = (call: string, given: Arguments) =>
      Object.fromEntries(Object.entries(given).map(([argument, value]) => [`${call}.${argument}`, value]));
    const sampling = {
      maxTokens: expect.any(Array),
      topP: [1],
      topK: [0],
      minP: [0],
      seed: expect.any(Array),
      signal: ["signal"],
    };
    expect(base).toEqual({
      ...name("generate", { calls: 12, temperature: [1], ...sampling }),
      // Validation is greedy although val_kwargs.temperature is 1, because do_sample is false.
      ...name("validate", { calls: 6, temperature: [0], ...sampling }),
      ...name("score", {
        calls: 2,
        sequences: [6],
        temperature: [1],
        entropy: [true, undefined],
        adapter: [false, undefined],
        signal: ["signal"],
      }),
      ...name("values", { sequences: [6], signal: ["signal"] }),
      // Neither has a signal: a started update is finished, whatever ends the run.
      ...name("train", {
        rows,
        learningRate: [1e-2],
        temperature: [1],
        ...optimizer,
        ...columnsOf("train"),
      }),
      ...name("critic", { rows, learningRate: [1e-3], ...optimizer, ...columnsOf("critic") }),
      ...lossOf({}),
      ...criticLossOf({}),
    });
  });

  it.each(TABLE)("%j", async (overrides, changes) => {
    const seen = await observe(overrides);
    const different: Arguments = {};
    for (const name of new Set([...Object.keys(base), ...Object.keys(seen)])) {
      if (JSON.stringify(seen[name]) === JSON.stringify(base[name])) continue;
      different[name] = !(name in seen) ? GONE : changes[name] === CHANGED ? CHANGED : seen[name];
    }
    expect(different).toEqual(changes);
  });

  it("no call of the actor while the critic warms up", async () => {
    const seen = await observe([`trainer.critic_warmup=${STEP}`]);
    expect(seen["score.calls"]).toBe(0);
    expect(Object.keys(seen).filter((name) => name.startsWith("train."))).toEqual([]);
    expect(seen["critic.rows"]).toEqual(base["critic.rows"]);
  });

  it("every key of the algorithms has a row above, or its test elsewhere", () => {
    const rows = TABLE.flatMap(([overrides]) => overrides.map((override) => override.split("=")[0]!));
    const known = new Set([...rows, ...Object.values(ELSEWHERE).flat()]);
    const config = trainConfigSchema.parse({ actor_rollout_ref: { model: { path: "m" } }, data: { train_files: "f" } });
    const { actor, rollout } = config.actor_rollout_ref;
    const keys = [
      ...listKeys({ actor, rollout }, "actor_rollout_ref"),
      ...listKeys({ critic: config.critic, algorithm: config.algorithm, distillation: config.distillation }),
      ...["lora_roles", ...Object.keys(visionKeys)].map((key) => `actor_rollout_ref.model.${key}`),
      ...Object.keys(imageKeys).map((key) => `data.${key}`),
    ];
    expect(keys.length).toBeGreaterThan(90);
    expect(keys.filter((key) => !known.has(key))).toEqual([]);
    expect(
      Object.values(ELSEWHERE)
        .flat()
        .filter((key) => !keys.includes(key)),
    ).toEqual([]);
  });
});

/** Columns of a call's batches, each expected to be any array: `base` itself is compared with this. */
function columnsOf(call: string): Arguments {
  const names = Object.keys(base).filter((name) => name.startsWith(`${call}.columns.`));
  return Object.fromEntries(names.map((name) => [name.slice(call.length + 1), expect.any(Array)]));
}

/** Lists the keys of all leaves: "a.b.c". */
function listKeys(node: object, path = ""): string[] {
  return Object.entries(node).flatMap(([key, value]) => {
    const here = path ? `${path}.${key}` : key;
    const isSection = value !== null && typeof value === "object" && !Array.isArray(value);
    return isSection ? listKeys(value, here) : [here];
  });
}

it("a model sees through the projector that its config names, with images as large as it says", async () => {
  const { folder } = await writeTinyRun(models);
  // A projector that takes images of any size, in patches of 8 pixels.
  await makeTinyProjector(join(folder, "mmproj.gguf"), { type: "pixtral" });
  const count = async (size: number, ...keys: string[]) => {
    const overrides = keys.map((key) => `actor_rollout_ref.model.${key.replace("{folder}", folder)}`);
    const { values } = loadConfig(trainConfigSchema, join(folder, "config.yaml"), overrides);
    const model = await loadConfiguredModel(values, folder);
    const tokens = model.images?.countTokens({ width: size, height: size });
    await model.dispose();
    return tokens;
  };
  const mmproj = "mmproj={folder}/mmproj.gguf";
  expect(await count(160)).toBeUndefined();
  expect(await count(160, mmproj)).toBeGreaterThan(400);
  expect(await count(160, mmproj, "image_max_tokens=100")).toBeLessThan(120);
  expect(await count(16, mmproj, "image_min_tokens=100")).toBeGreaterThan(99);
});

describe("arguments of the engines for each conversation", () => {
  it("each turn of each sample has a seed of its own, from the run's, the step, row, sample and turn", async () => {
    for (const seed of [0, 5]) {
      const training = await open([`${ROLLOUT}.seed=${seed}`]);
      await runTrainingStep(training, { rows: training.trainRows, step: STEP, epoch: 0 });
      const expected = training.trainRows.flatMap(({ uid }) =>
        [0, 1].flatMap((sample) => [0, 1].map((turn) => hashSeed(hashSeed(seed, STEP, uid, sample), turn))),
      );
      expect(new Set(expected).size).toBe(12);
      expect(training.calls.generate.map((options) => options.seed).sort()).toEqual(expected.sort());
      await training.dispose();
    }
  });

  it("the actor: the logprobs of both policies, before the update, from the first token of the response", async () => {
    const training = await open();
    const { trajectories } = await runTrainingStep(training, { rows: training.trainRows, step: STEP, epoch: 0 });
    for (const [sequences] of [...training.calls.score, ...training.calls.values])
      expect(sequences.map(({ tokenIds, from }) => [Array.from(tokenIds), from])).toEqual(
        trajectories.map((t) => [[...t.tokenIds], t.promptLength]),
      );
    for (const { tokenIds, lossMask, columns } of training.calls.train.flatMap(([batch]) => batch)) {
      const t = trajectories.find((other) => other.tokenIds.join() === Array.from(tokenIds).join())!;
      expect([...(lossMask as Uint8Array)]).toEqual([...t.responseMask]);
      const score = async (adapter: boolean) =>
        (await training.policy.engine.score([{ tokenIds, from: t.promptLength }], { adapter }))[0]!.logprobs;
      expect(columns!.oldLogprobs).toEqual(await score(true));
      expect(columns!.refLogprobs).toEqual(await score(false));
      expect(columns!.refLogprobs).not.toEqual(columns!.oldLogprobs);
    }
    await training.dispose();
  });

  it("the critic: its values from before the update, which its clip is around, and other returns", async () => {
    const training = await open(["algorithm.lam=0.9"]);
    const { trajectories } = await runTrainingStep(training, { rows: training.trainRows, step: STEP, epoch: 0 });
    const critic = new FakeValueEngine();
    for (const { tokenIds, columns } of training.calls.trainCritic.flatMap(([batch]) => batch)) {
      const t = trajectories.find((other) => other.tokenIds.join() === Array.from(tokenIds).join())!;
      const [values] = await critic.values([{ tokenIds, from: t.promptLength }]);
      expect(columns!.oldValues).toEqual(values);
      // gamma is 1 and only the last sampled token has a reward, so that its return is the reward.
      const last = t.responseMask.lastIndexOf(1);
      expect(columns!.returns![last]).toBeCloseTo(t.reward, 5);
      expect(columns!.returns![last]).not.toBeCloseTo(columns!.oldValues![last]!, 2);
    }
    await training.dispose();
  });

  it("a loss that ranks a mini-batch: its logprobs before each later update, at the rollouts' temperature", async () => {
    const training = await open([`${ACTOR}.policy_loss.loss_mode=clip_cov`, `${ROLLOUT}.temperature=0.7`]);
    const { trajectories } = await runTrainingStep(training, { rows: training.trainRows, step: STEP, epoch: 0 });
    // Old and reference logprobs of all, then the mini-batches after the first.
    expect(training.calls.score.map(([sequences]) => sequences.length)).toEqual([6, 6, 2, 4, 2]);
    for (const [, options] of training.calls.score) expect(options).toMatchObject({ temperature: 0.7 });
    for (const [sequences, options] of training.calls.score.slice(2)) {
      expect(options!.adapter ?? true).toBe(true);
      for (const { tokenIds, from } of sequences) {
        const t = trajectories.find((other) => other.tokenIds.join() === Array.from(tokenIds).join())!;
        expect(from).toBe(t.promptLength);
      }
    }
    await training.dispose();
  });
});

describe("every option of the losses and of the rollout correction", () => {
  const read = (overrides: Record<string, unknown>) => {
    const raw: Record<string, unknown> = {
      actor_rollout_ref: {
        model: { path: "m" },
        actor: { policy_loss: overrides.policy_loss ?? {}, ...(overrides.actor ?? {}) },
      },
      data: { train_files: "f" },
      algorithm: { rollout_correction: overrides.rollout_correction ?? {} },
    };
    const { actor_rollout_ref, algorithm, distillation } = trainConfigSchema.parse(raw);
    return {
      ...importLoss({ actor_rollout_ref, algorithm, distillation }),
      ...importCorrection(algorithm),
    } as Arguments;
  };

  it.each([
    ["policy_loss", "loss_mode", "gpg", "lossMode"],
    ["policy_loss", "clip_cov_ratio", 0.5, "clipCovRatio"],
    ["policy_loss", "clip_cov_lb", 0.5, "clipCovLb"],
    ["policy_loss", "clip_cov_ub", 0.5, "clipCovUb"],
    ["policy_loss", "kl_cov_ratio", 0.5, "klCovRatio"],
    ["policy_loss", "ppo_kl_coef", 0.5, "ppoKlCoef"],
    ["policy_loss", "dro_beta", 0.5, "droBeta"],
    ["actor", "tau_pos", 0.5, "tauPos"],
    ["actor", "tau_neg", 0.5, "tauNeg"],
    ["rollout_correction", "rollout_is", "sequence", "rolloutIs"],
    ["rollout_correction", "rollout_is_threshold", 3, "rolloutIsThreshold"],
    ["rollout_correction", "rollout_is_batch_normalize", true, "rolloutIsBatchNormalize"],
    ["rollout_correction", "rollout_token_veto_threshold", 0.5, "rolloutTokenVetoThreshold"],
  ])("%s.%s=%s", (section, key, value, option) => {
    expect(read({ [section]: { [key]: value } })).toEqual({ ...read({}), [option]: value });
  });

  it("rollout_rs with its thresholds, and IcePop's two bounds", () => {
    const correction = (rollout_correction: Record<string, unknown>) => read({ rollout_correction });
    const rollout_rs = { rollout_rs: "geometric", rollout_rs_threshold: 3, rollout_rs_threshold_lower: 0.5 };
    const rolloutRs = parseRejectionRules("geometric", 3, 0.5);
    expect(correction(rollout_rs)).toEqual({ ...read({}), rolloutRs });
    const icePop = { rolloutIsThreshold: 5, rolloutIsThresholdLower: 0.5 };
    expect(correction({ rollout_is_threshold: "0.5_5" })).toEqual({ ...read({}), ...icePop });
  });

  it("with bypass_mode the loss corrects: with weights where it is reinforce, else by rejection alone", () => {
    const given = { bypass_mode: true, rollout_is: "token", rollout_rs: "seq_max_k3", rollout_rs_threshold: 0.2 };
    const rolloutRs = parseRejectionRules("seq_max_k3", 0.2);
    const clipped = read({ rollout_correction: given });
    expect(clipped).toMatchObject({ lossMode: "vanilla", currentCorrection: { rolloutIs: null, rolloutRs } });
    const weighted = read({ rollout_correction: { ...given, loss_type: "reinforce" } });
    expect(weighted).toMatchObject({ lossMode: "gpg", currentCorrection: { rolloutIs: "token", rolloutRs } });
    for (const loss_mode of ["bypass_mode", "gspo"])
      expect(read({ rollout_correction: given, policy_loss: { loss_mode } }).lossMode).toBe(
        loss_mode === "gspo" ? "gspo" : "vanilla",
      );
    expect(read({}).currentCorrection).toBeNull();
  });
});

describe("every option of the teacher", () => {
  const read = (distillation: Record<string, unknown>) =>
    trainConfigSchema.parse({
      actor_rollout_ref: { model: { path: "m" } },
      data: { train_files: "f" },
      distillation: { enabled: true, ...distillation },
    });

  it.each([
    ["loss_mode", "k1", "estimate"],
    ["use_task_rewards", false, "taskRewards"],
    ["topk", 7, "topk"],
    ["distillation_loss_coef", 0.3, "coefficient"],
    ["use_policy_gradient", true, "policyGradient"],
    ["policy_loss_mode", "gspo", "lossMode"],
    ["clip_ratio_low", 0.1, "clipRatioLow"],
    ["clip_ratio_high", 0.4, "clipRatioHigh"],
    ["loss_max_clamp", 3, "maxLoss"],
    ["log_prob_min_clamp", -9, "minLogprob"],
  ])("distillation_loss.%s=%s is of the loss", (key, value, option) => {
    const config = read({ distillation_loss: { [key]: value } });
    expect(importTeacherTerm(config)).toEqual({ ...importTeacherTerm(read({})), [option]: value });
    expect(importLoss(config).teacher).toEqual(importTeacherTerm(config));
  });

  it("guided, turn_weights, turn_weight_delta, teacher_key and the teachers are of the step", () => {
    const distillation_loss = { turn_weights: "relative", turn_weight_delta: 0.5 };
    const entry = {
      key: "a",
      model_path: "t.gguf",
      lora_adapter_path: "l.gguf",
      hint_key: "hint",
      correction_key: "fix",
    };
    const guided = { share: 0.4, steps: 9 };
    const found = importDistillation(
      read({ distillation_loss, guided, teacher_key: "level", teacher_models: { t: entry } }),
    );
    expect(found).toMatchObject({ guidedShare: 0.4, guidedSteps: 9 });
    expect(found).toMatchObject({ turnWeights: "relative", turnWeightDelta: 0.5, teacherKey: "level" });
    expect(found!.teachers).toEqual({
      t: { key: "a", model: "t.gguf", adapter: "l.gguf", weights: "base", hintKey: "hint", correctionKey: "fix" },
    });
    expect(importDistillation(read({ enabled: false }))).toBeNull();
    expect(importLoss(read({ enabled: false })).teacher).toBeNull();
  });
});
