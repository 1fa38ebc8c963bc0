import { describe, expect, it } from "vitest";
import { makeRolloutCorrectionOptions } from "../train/algorithm-options.js";
import { makePolicyLossOptions } from "../train/policy-loss-options.js";
import { checkConfig } from "./check-config.js";
import { writeKey } from "./renamed-keys.js";
import { describeSetAside, setAsideForeignKeys } from "./set-aside-keys.js";
import { trainConfigSchema } from "./train-config.js";

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
      const { actor } = parse({ [`${prefix}.tau_pos`]: 1.5, [`${prefix}.tau_neg`]: 2.5 }).config.actor_rollout_ref;
      expect(makePolicyLossOptions(actor, 8)).toMatchObject({ tauPos: 1.5, tauNeg: 2.5 });
    }
  });

  it("what both names say differently is told", () => {
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

  it("prime judges as naive does", () => {
    expect(parse({ "reward_model.reward_manager": "prime" }).config.reward_model.reward_manager).toBe("naive");
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

describe("rollout_rs", () => {
  const section = "algorithm.rollout_correction";
  const make = (keys: Record<string, unknown>) => {
    const given = Object.fromEntries(Object.entries(keys).map(([key, value]) => [`${section}.${key}`, value]));
    return makeRolloutCorrectionOptions(parse(given).config.algorithm);
  };

  it.each([
    ["token", "token_k1", "token"],
    ["sequence", "seq_sum_k1", "sequence"],
    ["geometric", "seq_mean_k1", "geometric"],
  ])("%s and %s are the same with one bound", (older, newer, rolloutRs) => {
    for (const name of [older, newer]) {
      expect(make({ rollout_rs: name, rollout_rs_threshold: 1.5 })).toMatchObject({
        rolloutRs,
        rolloutRsThreshold: 1.5,
        rolloutRsThresholdLower: null,
      });
      expect(make({ rollout_rs: name }).rolloutRsThreshold).toBe(2);
    }
  });

  it("two bounds in one text are of sampler / training graph, rollout_rs_threshold_lower of the inverse", () => {
    const text = make({ rollout_rs: "token_k1", rollout_rs_threshold: "0.8_4" });
    expect(text.rolloutRsThreshold).toBeCloseTo(1.25, 12);
    expect(text.rolloutRsThresholdLower).toBeCloseTo(0.25, 12);
    expect(make({ rollout_rs: "token", rollout_rs_threshold: 1.5, rollout_rs_threshold_lower: 0.9 })).toMatchObject({
      rolloutRsThreshold: 1.5,
      rolloutRsThresholdLower: 0.9,
    });
  });

  it.each(["2_0.5", "0_2", "1_1", "x_2"])("%s leaves nothing", (text) => {
    expect(() => make({ rollout_rs: "token_k1", rollout_rs_threshold: text })).toThrow(/lower_upper/);
  });
});
