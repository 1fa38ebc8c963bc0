import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { losses } from "@cria/algorithms";
import { TinyModels } from "@cria/engine/testing";
import { afterAll, describe, expect, it } from "vitest";
import { loadPolicy } from "../policy/load-policy.js";
import { openTinyTraining } from "../testing/tiny-training.js";
import { runTrainingStep } from "./training-step.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

const ANSWER = "Lima, rain";

/** An agent whose tools answer once, or once in each of two conversations that go on from its first answer. */
function useAgent(branches: number) {
  const name = `observing-${branches}`;
  const body = `
    const asked = [...row.prompt];
    const { message } = await session.complete({ messages: asked, maxTokens: 3 });
    for (let i = 0; i < ${branches}; i++)
      await session.complete({
        messages: [...asked, message, { role: "tool", content: i === 0 ? "${ANSWER}" : "other" }],
        maxTokens: 3,
      });`;
  writeFileSync(join(models.folder, `${name}.mjs`), `export async function agent({ row, session }) {${body}\n}\n`);
  const file = join(models.folder, `${name}.yaml`);
  writeFileSync(file, `- name: ${name}\n  agent: ./${name}.mjs#agent\n`);
  return { default_agent_loop: name, agent_loop_config_path: file };
}

async function open(branches: number, actor: Record<string, unknown>, more: Record<string, unknown> = {}) {
  return openTinyTraining(models, {
    reward: "return 0;",
    prompts: ["a", "b", "c"],
    data: { max_prompt_length: 16, max_response_length: 40 },
    rollout: { response_length: 40, prompt_length: 16, agent: useAgent(branches) },
    actor,
    ...more,
  });
}

async function takeSteps(training: Awaited<ReturnType<typeof open>>, count: number) {
  const metrics: Record<string, number>[] = [];
  for (let step = 1; step <= count; step++)
    metrics.push((await runTrainingStep(training, { rows: training.trainRows, step, epoch: 0 })).metrics);
  return metrics;
}

describe("observation_coeff", () => {
  it.each([1, 2])("teaches the policy the answers of its tools, in %i conversations", async (branches) => {
    const training = await open(branches, { observation_coeff: 1, optim: { lr: 2e-2 } });
    const steps = await takeSteps(training, 6);
    const found = steps.map((metrics) => metrics["actor/observation_loss"]!);
    expect(found.at(-1)).toBeLessThan(0.7 * found[0]!);
    // Each trained token of tools is text of an answer; sampled tokens are in the loss as before.
    for (const batch of training.batches)
      for (const { tokenIds, lossMask, columns } of batch) {
        const observed = Array.from(tokenIds).filter((_, t) => columns!.tokenKind![t]);
        const text = training.policy.engine.detokenize(observed);
        expect([ANSWER, "other"]).toContain(text);
        expect(Array.from(lossMask).filter((bit) => bit).length).toBeGreaterThan(observed.length);
      }
    await training.dispose();
  });

  it("0 trains on no answer, and without advantage on nothing", async () => {
    const training = await open(1, {});
    const [metrics] = await takeSteps(training, 1);
    expect(metrics).not.toHaveProperty("actor/observation_loss");
    expect(training.batches).toEqual([]);
    await training.dispose();
  });

  it("takes the logprobs of sampled tokens from the update's own pass", async () => {
    for (const branches of [1, 2]) {
      const training = await open(branches, { observation_coeff: 0.1, old_log_prob: "compare" });
      const [metrics] = await takeSteps(training, 1);
      await training.dispose();
      expect(metrics!["training/old_log_prob_diff_max"]).toBeLessThan(1e-5);
    }
  });
});

it("policy.train with observations needs a batch that has its trajectories", async () => {
  const policy = await loadPolicy(await models.write({ seed: 5, embeddingScale: 0.25 }), {
    lora: { rank: 2 },
    threads: 1,
  });
  const lossMask = Uint8Array.of(0, 0, 1, 1);
  const columns = { advantages: Float32Array.of(0, 0, 1, 1) };
  const batch = {
    groups: ["a"],
    lossMasks: [lossMask],
    sequences: new Map([[0, [{ tokenIds: Int32Array.of(5, 6, 7, 8), lossMask, columns }]]]),
    temperature: 1,
    responseLength: 8,
    isScored: false,
  };
  await expect(policy.train(batch, losses.ppo({ observations: 0.1 }), { learningRate: 1e-3 })).rejects.toMatchObject({
    code: "data/no-trajectories",
  });
  await policy.dispose();
});
