import { describe, expect, it } from "vitest";
import { findConfigFile, findKeys } from "./find-keys.js";

const train = findConfigFile("train");
const names = (query: string, file = train) => findKeys(file, query).keys.map(({ key }) => key);

describe("cria config", () => {
  it("all keys, a section's, one, or all of a last name", () => {
    expect(names("").length).toBeGreaterThan(180);
    expect(names("algorithm.kl_ctrl")).toEqual(
      ["type", "kl_coef", "target_kl", "horizon"].map((name) => `algorithm.kl_ctrl.${name}`),
    );
    expect(names("trainer.save_freq")).toEqual(["trainer.save_freq"]);
    expect(names("temperature")).toEqual([
      "actor_rollout_ref.rollout.temperature",
      "actor_rollout_ref.rollout.val_kwargs.temperature",
      "reward_model.model.temperature",
    ]);
    expect(names("reward_model.model")).toContain("reward_model.model.base_url");
    // A key below any name of a mapping.
    expect(names("hint_key")).toEqual(["distillation.teacher_models.<name>.hint_key"]);
    expect(names("class_name", findConfigFile("tools"))).toEqual(["class_name"]);
  });

  it("one in full: its values, its default, its meaning, verl's, other names, registered names", () => {
    expect(findKeys(train, "actor_rollout_ref.actor.grad_clip").keys).toEqual([
      {
        key: "actor_rollout_ref.actor.grad_clip",
        type: "a number, at least 0",
        default: 1,
        meaning: "Largest norm of the gradient, which is scaled down to it; 0: no limit.",
        required: false,
        verl: null,
        other_names: ["actor_rollout_ref.actor.optim.clip_grad"],
      },
    ]);
    expect(findKeys(train, "trainer.total_epochs").keys[0]).toMatchObject({ verl: { default: 30 } });
    expect(findKeys(train, "algorithm.adv_estimator").keys[0]!.names).toContain("grpo");
    expect(findKeys(train, "actor_rollout_ref.model.path").keys[0]).toMatchObject({ required: true });
    expect(findKeys(train, "actor_rollout_ref.model.path").keys[0]).not.toHaveProperty("default");
  });

  it("other frameworks' keys: their replacement or reason", () => {
    const renamed = findKeys(train, "actor_rollout_ref.actor.optim.clip_grad");
    expect(renamed.note).toBe(
      "actor_rollout_ref.actor.optim.clip_grad is another name of actor_rollout_ref.actor.grad_clip",
    );
    expect(renamed.keys.map(({ key }) => key)).toEqual(["actor_rollout_ref.actor.grad_clip"]);
    expect(findKeys(train, "critic.fsdp.offload")).toEqual({
      keys: [],
      note: "critic.fsdp has no effect: weights are not sharded",
    });
    expect(findKeys(train, "trainer.v1.sampler.custom_sampler.path").note).toMatch(/algorithm\.replay\.sampling/);
    expect(findKeys(train, "data.datagen.path").note).toBe("data.datagen.path is not supported yet; it may be null");
  });

  it("an unknown key gets the nearest one, or the place of its name", () => {
    const unknown = (subject: string, more: object) =>
      expect.objectContaining({ code: "config/unknown-argument", subject, ...more });
    for (const [query, nearest] of [
      ["trainer.save_frq", "trainer.save_freq"],
      ["temprature", "temperature"],
      ["algoritm", "algorithm"],
    ] as const) {
      const expected = expect.stringContaining(`"${nearest}"`);
      expect(() => findKeys(train, query)).toThrow(unknown(query, { expected }));
    }
    const remedy = expect.stringContaining("cria config group_by_length --of sft");
    expect(() => findKeys(train, "group_by_length")).toThrow(unknown("group_by_length", { remedy }));
    expect(() => findKeys(train, "zzzzzzzzzzzzz")).toThrow(unknown("zzzzzzzzzzzzz", { expected: undefined }));
    const kinds = { expected: "train, sft, tools, interactions, agent-loops", received: "tool" };
    expect(() => findConfigFile("tool")).toThrow(
      expect.objectContaining({ code: "config/bad-argument", subject: "--of", ...kinds }),
    );
  });
});
