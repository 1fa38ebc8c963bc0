import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { PolicySequence } from "@cria/core";
import { TinyModels } from "@cria/engine/testing";
import { getToolFormat, type ToolFormat } from "@cria/tools";
import { afterAll, describe, expect, it, vi } from "vitest";
import { runTrainingStep } from "../step/training-step.js";
import { openTinyTraining, type TinyTrainingOptions, writeTinyRun } from "../testing/tiny-training.js";
import { runValidation } from "../validation/run-validation.js";
import { openTraining } from "./training.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

const shared = join(models.folder, "environment");
mkdirSync(shared);
const file = (name: string, text: string): string => {
  writeFileSync(join(shared, name), text);
  return join(shared, name);
};
file(
  "mine.ts",
  `import { BaseInteraction } from "@cria/tools";
import { ToolAgentLoop, type AgentLoopContext } from "@cria/rollout";
export class Mine extends BaseInteraction {
  override async startInteraction() {}
  override async generateResponse(id: string, messages: readonly unknown[]) {
    return { shouldTerminate: messages.length > 1, content: "?", score: 0.5 };
  }
  override async calculateScore() { return 0.25; }
  override async finalizeInteraction() {}
}
export const parse = (text: string) => ({ content: "", calls: [{ name: text, arguments: {} }] });
export function makeLoop(context: AgentLoopContext, config: { mark: number }) {
  const loop = new ToolAgentLoop(context);
  return { run: async (sampling, row) => {
    const output = await loop.run(sampling, row);
    return { ...output, extraFields: { ...output.extraFields, mark: config.mark } };
  } };
}
`,
);
const interactions = file("interaction.yaml", "interaction:\n  - name: test\n    class_name: ./mine.ts#Mine\n");
const loops = file("loops.yaml", "- name: marked\n  _target_: ./mine.ts#makeLoop\n  config: { mark: 7 }\n");

const open = async (rollout: Record<string, unknown>, more: Partial<TinyTrainingOptions> = {}) =>
  openTinyTraining(models, { ...more, rollout: { response_length: 8, ...rollout } });

describe("multi-turn keys of the config", () => {
  it("interaction_config_path: its scores reach the trajectories and the rewards on tokens", async () => {
    const training = await open({ multi_turn: { interaction_config_path: interactions }, n: 4 });
    const { trajectories } = await runTrainingStep(training, { rows: training.trainRows, step: 1, epoch: 0 });
    expect(training.environment.interactions!.has("test")).toBe(true);
    const judged = trajectories.filter((t) => t.turnScores.length > 0);
    for (const t of judged) {
      expect(t.reward).toBeCloseTo(t.rewards.score! + 0.5);
      expect(t.rewards.interactionScore).toBe(0.25);
    }
    for (const t of trajectories) expect(t.timeline!.request.at(-1)!.state).toBe("completed");
  });

  it("agent_loop_config_path: TypeScript, also by the field's name of the key", async () => {
    const training = await open({ agent: { agent_loop_config_path: loops, default_agent_loop: "marked" } });
    const { trajectories } = await runTrainingStep(training, { rows: training.trainRows, step: 1, epoch: 0 });
    expect(trajectories.map((t) => t.extraFields.mark)).toEqual(Array(12).fill(7));
  });

  it("num_repeat_rollouts: so many samples of each prompt", async () => {
    const training = await open({ multi_turn: { num_repeat_rollouts: 2 } });
    const { trajectories } = await runTrainingStep(training, { rows: training.trainRows, step: 1, epoch: 0 });
    expect(trajectories.map((t) => [t.rowIndex, t.sampleIndex])).toEqual(
      [0, 1, 2].flatMap((r) => [
        [r, 0],
        [r, 1],
      ]),
    );
  });

  it("the others reach the agent loop", async () => {
    const multi_turn = {
      interaction_interval: 2,
      interaction_prob: 0.5,
      train_on_tool_calls: false,
      use_inference_chat_template: true,
    };
    expect((await open({ multi_turn })).environment.multiTurn).toMatchObject({
      interactionInterval: 2,
      interactionProb: 0.5,
      trainOnToolCalls: false,
      useInferenceChatTemplate: true,
    });
    expect((await open({ multi_turn: { enable: false } })).environment).toMatchObject({
      interactions: null,
      multiTurn: { maxAssistantTurns: 1 },
    });
  });

  it("stop, min_p and max_tokens_per_turn reach the engine, in training and in validation; val_kwargs has its own min_p", async () => {
    const training = await open(
      { stop: "Q", min_p: 0.05, max_tokens_per_turn: 3, val_kwargs: { do_sample: true, min_p: 0.2 } },
      { data: { val_files: "rows.jsonl" } },
    );
    const sequence = training.policy.engine.createSequence();
    const generate = vi.spyOn(Object.getPrototypeOf(sequence) as PolicySequence, "generate");
    sequence.dispose();
    await runTrainingStep(training, { rows: training.trainRows, step: 1, epoch: 0 });
    const trained = generate.mock.calls.splice(0).map(([, options]) => options);
    expect(trained.length).toBeGreaterThan(0);
    for (const options of trained) {
      expect(options).toMatchObject({ stopStrings: ["Q"], minP: 0.05 });
      expect(options.maxTokens).toBeLessThanOrEqual(3);
    }
    await runValidation(training, { step: 1, file: join(training.folder, "validation.jsonl") });
    const validated = generate.mock.calls.map(([, options]) => options);
    expect(validated.length).toBeGreaterThan(0);
    for (const options of validated) {
      expect(options).toMatchObject({ stopStrings: ["Q"], minP: 0.2 });
      expect(options.maxTokens).toBeLessThanOrEqual(3);
    }
    generate.mockRestore();
  });

  it("format: a parser of the user's, by module and export", async () => {
    const { environment } = await open({ multi_turn: { format: `${join(shared, "mine.ts")}#parse` } });
    const { parse } = environment.multiTurn.format as ToolFormat;
    expect(parse("text")).toEqual({ content: "", calls: [{ name: "text", arguments: {} }] });
    // A built-in format is found by its name.
    expect((await open({ multi_turn: { format: "mistral" } })).environment.multiTurn.format).toBe(
      getToolFormat("mistral"),
    );
  });

  it.each([
    [{ stop: ["x", ""] }, "config/bad-value", /rollout\.stop$/, {}],
    [{ min_p: 1 }, "config/bad-value", /rollout\.min_p$/, {}],
    [{ max_tokens_per_turn: 0 }, "config/bad-value", /max_tokens_per_turn$/, {}],
    [{ multi_turn: { format: "./none.ts#parse" } }, "config/unreadable", /none\.ts/, {}],
    [
      { multi_turn: { format: "hermse" } },
      "config/unknown-name",
      /multi_turn\.format$/,
      { expected: expect.stringContaining("deepseek_v3"), received: "hermse" },
    ],
    [{ multi_turn: { interaction_config_path: "none.yaml" } }, "config/unreadable", /none\.yaml$/, {}],
    [{ multi_turn: { interaction_config_path: loops } }, "interaction/not-one", /makeLoop"$/, {}],
    [
      { multi_turn: { interaction_config_path: file("empty.yaml", "a: 1") } },
      "config/bad-value",
      /empty\.yaml$/,
      { expected: expect.stringContaining("class_name") },
    ],
    [
      { agent: { agent_loop_config_path: file("nameless.yaml", "- class_name: ./mine.ts#makeLoop") } },
      "config/bad-value",
      /agent_loops\[0\]\.name$/,
      {},
    ],
    [
      { agent: { agent_loop_config_path: loops, default_agent_loop: "unmarked" } },
      "config/unknown-name",
      /./,
      { received: "unmarked" },
    ],
    [{ multi_turn: { interaction_prob: 2 } }, "config/bad-value", /interaction_prob$/, {}],
  ])("%j is refused before a model is loaded", async (rollout, code, subject, details) => {
    await expect(
      writeTinyRun(models, { rollout }).then(({ config, folder }) => {
        config.actor_rollout_ref.model.path = "none.gguf";
        return openTraining(config, folder);
      }),
    ).rejects.toMatchObject({ code, subject: expect.stringMatching(subject), ...details });
  });
});
