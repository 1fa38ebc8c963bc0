import { CriaError } from "@cria/core";
import { describe, expect, it } from "vitest";
import { checkConfig } from "./check-config.js";
import { sftConfigSchema } from "./sft-config.js";
import { trainConfigSchema } from "./train-config.js";

const required = { actor_rollout_ref: { model: { path: "m.gguf" } }, data: { train_files: "t.jsonl" } };

function refuse(raw: Record<string, unknown>): CriaError {
  try {
    checkConfig(trainConfigSchema, { ...required, ...raw }, "c.yaml");
  } catch (error) {
    if (error instanceof CriaError) return error;
  }
  throw new Error("accepted");
}

describe("unknown keys", () => {
  it("are reported all at once, each with the nearest key that has an effect", () => {
    expect(
      refuse({
        trainer: { total_epoch: 3, nothing_of_the_kind: 1 },
        algoritm: { adv_estimator: "grpo" },
        critic: { optim: { temperature: 1 } },
      }),
    ).toMatchObject({
      code: "config/unknown-key",
      subject: "c.yaml",
      received: [
        "",
        '    critic.optim.temperature, perhaps "actor_rollout_ref.rollout.temperature"',
        '    trainer.total_epoch, perhaps "trainer.total_epochs"',
        "    trainer.nothing_of_the_kind",
        '    algoritm, perhaps "algorithm"',
      ].join("\n"),
    });
  });

  it("are also compared with names of other versions", () => {
    expect(refuse({ critic: { ppo_max_token_len_per_gpus: 1 } }).expected).toMatch(
      /"critic\.ppo_max_token_len_per_gpu"/,
    );
  });

  it.each([
    ["data", "gen_batch_sizes"],
    ["critic", "forward_max_token_len_per_gpus"],
    ["trainer", "n_gpu_per_node"],
  ])("%s.%s: no key without effect is suggested", (section, key) => {
    const given = section === "data" ? { ...required.data, [key]: 1 } : { [key]: 1 };
    const error = refuse({ [section]: given });
    expect(error).toMatchObject({ code: "config/unknown-key", subject: `c.yaml: ${section}.${key}` });
    expect(error.message).not.toMatch(/val_batch_size|forward_micro|n_gpus|gen_batch_size"/);
  });
});

describe("wrong values", () => {
  it.each([
    [{ trainer: { total_epochs: "ten" } }, "trainer.total_epochs", "a whole number, above 0", '"ten"'],
    [{ trainer: { total_epochs: 1.5 } }, "trainer.total_epochs", "a whole number, above 0", "1.5"],
    [{ trainer: { logger: 3 } }, "trainer.logger", /^a list; each entry one of console, file/, "3"],
    [{ trainer: { logger: ["consol"] } }, "trainer.logger.0", /^one of console, file, tensorboard/, '"consol"'],
    [{ trainer: { logger: "consol" } }, "trainer.logger.0", /^one of console, file, tensorboard/, '"consol"'],
    [{ trainer: { val_only: "no" } }, "trainer.val_only", "true or false", '"no"'],
    [{ critic: { optim: { betas: [0.9] } } }, "critic.optim.betas", "a list of 2 values", "[0.9]"],
    [{ critic: { optim: { betas: [1, 2] } } }, /.*/, /a number, at least 0 and below 1/, /betas\.0: 1/],
    [{ critic: 3 }, "critic", "a mapping of keys and values", "3"],
    [{ data: {} }, "data.train_files", "a text; or a list; each entry a text", "nothing"],
    [{ algorithm: { gamma: 2 } }, "algorithm.gamma", "a number, at least 0 and at most 1", "2"],
    [{ algorithm: { gamma: Number.NaN } }, "algorithm.gamma", /a number/, "NaN"],
    [{ custom_reward_function: { reward_kwargs: [] } }, /reward_kwargs/, "a mapping of keys and values", "[]"],
    [{ reward_model: { model: { base_url: "x" } } }, "reward_model.model.0.base_url", /http/, '"x"'],
    [{ reward_model: { model: { name: "1", path: "p" } } }, /name/, "a name of letters, digits and _", '"1"'],
    [{ reward_model: { trajectory_reward: { length_penalty: 1 } } }, /length_penalty/, /added for each/, "1"],
    [{ trainer: { project_name: "../../x" } }, "trainer.project_name", /a name of a folder/, '"../../x"'],
    [{ trainer: { project_name: "" } }, "trainer.project_name", /a name of a folder/, '""'],
    [{ trainer: { experiment_name: "a/../../.." } }, "trainer.experiment_name", /does not lead out/, '"a/../../.."'],
    [{ trainer: { experiment_name: "/tmp/x" } }, "trainer.experiment_name", /does not lead out/, '"/tmp/x"'],
    [{ trainer: { experiment_name: "." } }, "trainer.experiment_name", /does not lead out/, '"."'],
    [{ trainer: { experiment_name: "c:\\x" } }, "trainer.experiment_name", /does not lead out/, /"c:/],
    [{ trainer: { experiment_name: "a\\..\\.." } }, "trainer.experiment_name", /does not lead out/, /"a/],
    [{ trainer: { threads: 0 } }, "trainer.threads", "a whole number, above 0, or null", "0"],
  ] as const)("%j", (raw, key, expected, received) => {
    const error = refuse(raw);
    expect(error.code).toBe("config/bad-value");
    // Errors of several values name the keys beside what they expect.
    expect(`${error.subject}${error.expected}`).toMatch(key);
    expect(error.expected).toMatch(expected);
    expect(error.received).toMatch(received);
    expect(error.message).not.toMatch(/Invalid|Too (small|big)|expected (string|number|array|int)|undefined/);
  });

  it("are reported all at once", () => {
    expect(refuse({ trainer: { total_epochs: 0, save_freq: "x" } })).toMatchObject({
      code: "config/bad-value",
      subject: "c.yaml",
      expected: "\n    trainer.total_epochs: a whole number, above 0\n    trainer.save_freq: a whole number",
    });
  });

  it("of `cria sft` are reported in the same words", () => {
    expect(() => checkConfig(sftConfigSchema, {}, "s.yaml")).toThrow(
      expect.objectContaining({
        code: "config/bad-value",
        subject: "s.yaml",
        expected: expect.stringContaining("model: a mapping"),
      }),
    );
  });
});
