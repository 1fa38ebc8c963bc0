import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { advantageEstimators, aggregations, klEstimates, policyLosses } from "@cria/algorithms";
import type { Registry } from "@cria/core";
import { FakeEngine, type FakeEngineOptions } from "@cria/core/testing";
import { TinyModels } from "@cria/engine/testing";
import { agentLoops, registerReward } from "@cria/rollout";
import { afterAll, describe, expect, it } from "vitest";
import { runTrainingStep } from "../step/training-step.js";
import { writeTinyRun } from "../testing/tiny-training.js";
import { openTraining, type Training } from "./training.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

/** Opens a run whose config always has the same relative paths; the files' contents depend on `mark`. */
async function open(mark: number): Promise<Training> {
  const { config, folder } = await writeTinyRun(models, {
    prompts: ["a", "bb"],
    reward: "return text.length;",
    data: { max_prompt_length: 2000, max_response_length: 1000 },
    algorithm: { adv_estimator: "./mine.ts#estimate", use_kl_in_reward: true, kl_penalty: "./mine.ts#penalty" },
    actor: {
      policy_loss: { loss_mode: "./mine.ts#loss" },
      loss_agg_mode: "./mine.ts#aggregate",
      use_kl_loss: true,
      kl_loss_type: "./mine.ts#kl",
    },
    rollout: {
      prompt_length: 2000,
      response_length: 1000,
      agent: { agent_loop_config_path: "loops.yaml", default_agent_loop: "mine" },
      multi_turn: { tool_config_path: "tools.yaml", format: "./mine.ts#parse" },
    },
  });
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
  write("tools.yaml", 'tools: [{ class_name: "@cria/tools#CalculatorTool" }]');
  write("loops.yaml", `agent_loops: [{ name: mine, class_name: "./mine.ts#makeLoop", config: { mark: ${mark} } }]`);
  write(
    "mine.ts",
    `import { aggregations, estimateGrpo, estimateK1 } from "@cria/algorithms";
import { ToolAgentLoop } from "@cria/rollout";
export const estimate = (inputs) => ({ ...estimateGrpo(inputs), metrics: { mine: ${mark} } });
export const loss = {
  evaluate: ({ logprobs }) => ({
    losses: new Float64Array(logprobs.length).fill(${mark}),
    gradients: new Float64Array(logprobs.length),
    metrics: {},
  }),
};
export const aggregate = (inputs) => aggregations.get("token-mean")(inputs).map((weight) => ${mark} * weight);
export const kl = () => ({ value: ${mark}, gradient: 0 });
export const penalty = () => ({ value: ${mark}, gradient: 0 });
export const parse = (text) =>
  text === "CALL"
    ? { content: "", calls: [{ name: "calculator", arguments: { expression: "${mark}" } }] }
    : { content: text, calls: [] };
export const makeLoop = (context, { mark }) => {
  const loop = new ToolAgentLoop(context);
  return {
    run: async (...args) => ({ ...(await loop.run(...args)), extraFields: { mark } }),
  };
};
`,
  );
  const reply: FakeEngineOptions["reply"] = ({ turn }) => (turn === 0 ? "CALL" : "done");
  return openTraining(config, folder, { engine: new FakeEngine({ reply, contextSize: 8192 }) });
}

/** Lists the entries of the registries that all runs of this process extend. */
function listRegistered() {
  const all: Registry<unknown>[] = [advantageEstimators, policyLosses, aggregations, klEstimates, agentLoops];
  return all.map((registry) => registry.names().map((name) => [name, registry.get(name)]));
}

describe("modules that configs load by path", () => {
  it("belong to their runs: the same relative names in two folders of one process load each folder's own", async () => {
    const before = listRegistered();
    const sessions = [await open(2), await open(3)];
    for (const [i, training] of sessions.entries()) {
      const mark = i + 2;
      const { metrics, trajectories } = await runTrainingStep(training, {
        rows: training.trainRows,
        step: 1,
        epoch: 0,
      });
      expect(metrics).toMatchObject({ "critic/mine": mark, "actor/reward_kl_penalty": mark });
      expect(metrics["actor/pg_loss"]).toBeCloseTo(mark * mark);
      expect(metrics["actor/kl_loss"]).toBeCloseTo(mark * mark);
      for (const { extraFields, messages } of trajectories) {
        expect(extraFields.mark).toBe(mark);
        expect(messages.find(({ role }) => role === "tool")!.content).toBe(String(mark));
      }
    }
    expect(listRegistered()).toEqual(before);
    for (const training of sessions) await training.dispose();
  });

  it("stand beside registrations of programs, before or after a run is opened", async () => {
    const training = await open(2);
    registerReward("late", () => 1);
    expect(training.registries.rewards.get("late")).toBeTypeOf("function");
    expect(training.environment.rewards).toBe(training.registries.rewards);
    await training.dispose();
  });
});
