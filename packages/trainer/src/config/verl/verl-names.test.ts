import { describe, expect, it } from "vitest";
import { checkConfig } from "../check-config.js";
import { importCorrection } from "../import/correction.js";
import { importLoss } from "../import/loss.js";
import { listWarnings } from "../list-warnings.js";
import { writeKey } from "../raw-config.js";
import { trainConfigSchema } from "../train-config.js";
import { describeSetAside, setAsideForeignKeys } from "./set-aside-keys.js";

function parse(keys: Record<string, unknown>) {
  const raw = {};
  for (const [key, value] of Object.entries({
    "actor_rollout_ref.model.path": "m.gguf",
    "data.train_files": "t.jsonl",
    ...keys,
  }))
    writeKey(raw, key, value);
  const { setAside } = setAsideForeignKeys(raw);
  return { config: checkConfig(trainConfigSchema, raw, "c.yaml"), notes: describeSetAside(setAside) };
}

describe("names of other versions", () => {
  it.each(["reward_model", "reward"])(
    "%s.reward_kwargs.overlong_buffer_cfg is reward_model.overlong_buffer",
    (name) => {
      const { config, notes } = parse({
        [`${name}.reward_kwargs`]: { overlong_buffer_cfg: { enable: true, len: 64, penalty_factor: 0.5, log: true } },
      });
      expect(config.reward_model.overlong_buffer).toEqual({ enable: true, len: 64, penalty_factor: 0.5, log: true });
      expect(notes).toEqual([]);
    },
  );

  it("the first multi-turn trainer's keys are those of today", () => {
    const { config, notes } = parse({
      "actor_rollout_ref.rollout.multi_turn": true,
      "actor_rollout_ref.rollout.tool_kwargs.tools_config_file": "tools.yaml",
      "actor_rollout_ref.rollout.interaction_config_file": "users.yaml",
      "data.filter_prompts": true,
    });
    expect(config.actor_rollout_ref.rollout.multi_turn).toMatchObject({
      enable: true,
      tool_config_path: "tools.yaml",
      interaction_config_path: "users.yaml",
    });
    expect(config.data.filter_overlong_prompts).toBe(true);
    expect(notes).toEqual([]);
    expect(
      parse({ "actor_rollout_ref.rollout.multi_turn": false }).config.actor_rollout_ref.rollout.multi_turn.enable,
    ).toBe(false);
    const turns = parse({ "actor_rollout_ref.rollout.multi_turn.max_turns": 5 }).config.actor_rollout_ref.rollout;
    expect(turns.multi_turn.max_assistant_turns).toBe(5);
  });

  it("an interaction that would never be asked is warned of", () => {
    const multiTurn = "actor_rollout_ref.rollout.multi_turn";
    const seed = { [`${multiTurn}.interaction_config_path`]: "u.yaml", [`${multiTurn}.interaction_interval`]: 2 };
    const find = (keys: Record<string, unknown>) =>
      listWarnings(parse(keys).config).filter(({ key }) => key.endsWith("interaction_interval"));
    expect(find(seed)).toHaveLength(1);
    expect(find({ ...seed, [`${multiTurn}.interaction_interval`]: 1 })).toEqual([]);
    expect(find({ ...seed, [`${multiTurn}.tool_config_path`]: "t.yaml" })).toEqual([]);
  });

  it("reward.* is reward_model.* and custom_reward_function.*", () => {
    const { config } = parse({
      "reward.custom_reward_function.path": "r.ts",
      "reward.custom_reward_function.name": "judge",
      "reward.reward_manager.name": "dapo",
      "reward.reward_model.enable": true,
      "reward.reward_model.model_path": "judge.gguf",
    });
    expect(config.custom_reward_function).toMatchObject({ path: "r.ts", name: "judge" });
    expect(config.reward_model).toMatchObject({
      enable: true,
      reward_manager: "dapo",
      model: [{ path: "judge.gguf" }],
    });
  });

  it("lengths of the rollout are those of the data unless they are given", () => {
    const { rollout } = parse({ "data.max_prompt_length": 100, "data.max_response_length": 200 }).config
      .actor_rollout_ref;
    expect([rollout.prompt_length, rollout.response_length]).toEqual([100, 200]);
    const given = parse({ "data.max_response_length": 200, "actor_rollout_ref.rollout.response_length": 50 });
    expect(given.config.actor_rollout_ref.rollout.response_length).toBe(50);
  });

  it("tau_pos and tau_neg stand in actor, as in verl 0.9; in policy_loss they are the same", () => {
    const section = "actor_rollout_ref.actor";
    for (const prefix of [section, `${section}.policy_loss`]) {
      const { config } = parse({ [`${prefix}.tau_pos`]: 1.5, [`${prefix}.tau_neg`]: 2.5 });
      expect(importLoss(config)).toMatchObject({ tauPos: 1.5, tauNeg: 2.5 });
    }
  });

  it("reports different values of two names of a key", () => {
    const { config, notes } = parse({
      "actor_rollout_ref.actor.grad_clip": 0.5,
      "actor_rollout_ref.actor.optim.clip_grad": 1,
    });
    expect(config.actor_rollout_ref.actor.grad_clip).toBe(0.5);
    expect(notes.join()).toMatch(/optim\.clip_grad has no effect: actor_rollout_ref\.actor\.grad_clip says it: 0\.5/);
  });

  it("the critic's tokens of a micro-batch, a tracker alone, no seed, more sequences than one cache holds", () => {
    const { config, notes } = parse({
      "critic.ppo_max_token_len_per_gpu": 4096,
      "critic.forward_max_token_len_per_gpu": 8192,
      "trainer.logger": "console",
      "data.seed": null,
      "actor_rollout_ref.rollout.max_num_seqs": 1024,
    });
    expect(config.critic.ppo_max_token_len).toBe(4096);
    expect(config.trainer.logger).toEqual(["console"]);
    expect(config.data.seed).toBe(0);
    expect(config.actor_rollout_ref.rollout.max_num_seqs).toBe(256);
    expect(notes.join()).toMatch(/forward_max_token_len_per_gpu[\s\S]*1024 is taken as 256/);
  });

  it.each(["prime", "gdpo"])("%s judges as naive does", (name) => {
    const { config, notes } = parse({ "reward.reward_manager.name": name });
    expect(config.reward_model.reward_manager).toBe("naive");
    expect(notes.join()).toContain(`${name} is taken as naive`);
  });

  it("the correction that verl 0.9 gives to the loss is the algorithm's", () => {
    const { config, notes } = parse({
      "actor_rollout_ref.actor.policy_loss.loss_mode": "bypass_mode",
      "actor_rollout_ref.actor.policy_loss.rollout_correction": { loss_type: "reinforce", rollout_is: "token" },
      "actor_rollout_ref.actor.use_rollout_log_probs": true,
      "actor_rollout_ref.actor.calculate_sum_pi_squared": false,
    });
    const correction = { bypass_mode: true, loss_type: "reinforce", rollout_is: "token" };
    expect(config.algorithm.rollout_correction).toMatchObject(correction);
    expect(importLoss(config)).toMatchObject({
      lossMode: "gpg",
      currentCorrection: { rolloutIs: "token" },
    });
    expect(notes).toEqual([]);
  });

  it("names of Python classes and Hydra's own sections are set aside", () => {
    const { notes } = parse({
      defaults: [],
      hydra: { run: 1 },
      "critic.optim._target_": "verl.X",
      "critic._target_": "Y",
    });
    expect(notes).toEqual([expect.stringMatching(/critic\._target_, critic\.optim\._target_, defaults, hydra has no/)]);
  });
});

describe("rollout_correction", () => {
  const section = "algorithm.rollout_correction";
  const make = (keys: Record<string, unknown>) => {
    const given = Object.fromEntries(Object.entries(keys).map(([key, value]) => [`${section}.${key}`, value]));
    return importCorrection(parse(given).config.algorithm);
  };
  const ratios = (keys: Record<string, unknown>) =>
    make(keys).rolloutRs.map(({ name, lower, upper }) => [name, Math.exp(lower), Math.exp(upper)]);
  const near = (x: number) => expect.closeTo(x, 12);

  it.each([
    ["token", "token_k1"],
    ["sequence", "seq_sum_k1"],
    ["geometric", "seq_mean_k1"],
  ])("%s and %s are the same with one bound", (older, newer) => {
    for (const name of [older, newer]) {
      expect(ratios({ rollout_rs: name, rollout_rs_threshold: 1.5 })).toEqual([[newer, near(1 / 1.5), near(1.5)]]);
      expect(ratios({ rollout_rs: name })).toEqual([[newer, near(0.5), near(2)]]);
    }
  });

  it("two bounds are of sampler / training graph, with the older names of the inverse", () => {
    expect(ratios({ rollout_rs: "token_k1", rollout_rs_threshold: "0.8_4" })).toEqual([
      ["token_k1", near(0.8), near(4)],
    ]);
    const older = { rollout_rs: "token", rollout_rs_threshold: 1.5, rollout_rs_threshold_lower: 0.9 };
    expect(ratios(older)).toEqual([["token_k1", near(1 / 1.5), near(1 / 0.9)]]);
  });

  it("several rules with commas, a threshold for each", () => {
    const rules = make({ rollout_rs: "token_k1,seq_max_k2", rollout_rs_threshold: "0.5_2.0,0.1" }).rolloutRs;
    expect(rules.map(({ name }) => name)).toEqual(["token_k1", "seq_max_k2"]);
    expect(rules[1]!.upper).toBe(0.1);
  });

  it("rollout_is_threshold has one bound, or IcePop's two", () => {
    const weights = (rollout_is_threshold: unknown) => {
      const options = make({ rollout_is: "token", rollout_is_threshold });
      return [options.rolloutIsThresholdLower, options.rolloutIsThreshold];
    };
    expect(weights(3)).toEqual([null, 3]);
    expect(weights("3.5")).toEqual([null, 3.5]);
    expect(weights("0.5_5.0")).toEqual([0.5, 5]);
    const refused = expect.objectContaining({
      code: "config/bad-value",
      subject: expect.stringContaining("rollout_is_threshold"),
    });
    for (const wrong of ["5_0.5", "1_2_3", "x", "-1_2"]) expect(() => weights(wrong), wrong).toThrow(refused);
  });

  it.each([
    ["token_k1", "2_0.5"],
    ["token_k1", "0_2"],
    ["token_k1", "1_1"],
    ["token_k2", null],
  ])("%s with %s is refused", (rollout_rs, rollout_rs_threshold) => {
    expect(() => make({ rollout_rs, rollout_rs_threshold })).toThrow(
      expect.objectContaining({ code: "config/bad-value", subject: expect.stringContaining("rollout_rs_threshold") }),
    );
  });

  it("seq_max_k1 is refused", () => {
    expect(() => make({ rollout_rs: "seq_max_k1", rollout_rs_threshold: 2 })).toThrow(
      expect.objectContaining({ code: "config/unknown-name", received: "seq_max_k1" }),
    );
  });
});
