import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TinyModels } from "@cria/engine/testing";
import { afterAll, describe, expect, it } from "vitest";
import type { TrainConfig } from "../config/train-config.js";
import { defineTask } from "../task/task.js";
import { writeTinyRun } from "../testing/tiny-training.js";
import { openConversations, openLosses } from "./open-participant.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

const TOOLS = JSON.stringify({ tools: [{ class_name: "@cria/tools#CalculatorTool", config: {} }] });
const withLoss = (config: TrainConfig, loss_mode: string): TrainConfig => {
  const { actor } = config.actor_rollout_ref;
  const policy_loss = { ...actor.policy_loss, loss_mode };
  return { ...config, actor_rollout_ref: { ...config.actor_rollout_ref, actor: { ...actor, policy_loss } } };
};

describe("a participant of a training", () => {
  it("opens tools, and neither rewards nor judges", async () => {
    const { config, folder } = await writeTinyRun(models, {
      rollout: { multi_turn: { tool_config_path: "tools.yaml" } },
      // This process does not open rewards.
      customRewardFunction: { path: "no-such-reward.mjs" },
      rewardModel: { enable: true, model: { path: "no-such-judge.gguf" } },
    });
    writeFileSync(join(folder, "tools.yaml"), TOOLS);
    const { environment, dispose } = await openConversations(config, folder);
    expect([...environment.tools.keys()]).toHaveLength(1);
    await dispose();
  });

  it("takes the files of a task from its own folders", async () => {
    const elsewhere = join(models.folder, "elsewhere");
    mkdirSync(elsewhere);
    const tools = join(elsewhere, "tools.yaml");
    writeFileSync(tools, TOOLS);
    const { config, folder } = await writeTinyRun(models, {
      rollout: { multi_turn: { tool_config_path: "/of/another/machine.yaml" } },
    });
    const task = defineTask({ rows: ["a"], tools, reward: () => 1 });
    const { environment, dispose } = await openConversations(config, folder, { task });
    expect([...environment.tools.keys()]).toHaveLength(1);
    await dispose();
  });

  it("loads the losses that the config names, and no estimator", async () => {
    const { config, folder } = await writeTinyRun(models, { algorithm: { adv_estimator: "./no-such.mjs#estimate" } });
    writeFileSync(join(folder, "loss.mjs"), "export const mine = { evaluate: () => {} };\n");
    const losses = await openLosses(withLoss(config, "./loss.mjs#mine"), folder);
    expect(losses.policyLosses.get("./loss.mjs#mine")).toMatchObject({ evaluate: expect.any(Function) });
    await expect(openLosses(withLoss(config, "./none.mjs#mine"), folder)).rejects.toMatchObject({
      code: "config/unreadable",
      subject: expect.stringContaining("./none.mjs"),
    });
    // It is in the coordinator's memory.
    await expect(openLosses(withLoss(config, "(in memory)"), folder)).rejects.toMatchObject({
      code: "config/unknown-name",
      received: "(in memory)",
    });
  });
});
