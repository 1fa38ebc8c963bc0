import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TinyModels } from "@cria/engine/testing";
import { afterAll, describe, expect, it } from "vitest";
import { openTinySession, type TinySessionOptions, writeTinyRun } from "../testing/tiny-session.js";
import { openSession } from "./session.js";
import { runTrainingStep } from "./training-step.js";

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

const open = async (rollout: Record<string, unknown>, more: Partial<TinySessionOptions> = {}) =>
  openTinySession(models, { ...more, rollout: { response_length: 8, ...rollout } });

describe("multi-turn keys of the config", () => {
  it("interaction_config_path: its scores reach the trajectories and the rewards on tokens", async () => {
    const session = await open({ multi_turn: { interaction_config_path: interactions }, n: 4 });
    const { trajectories } = await runTrainingStep(session, session.trainRows, 1, 0);
    expect(session.rollout.interactions!.has("test")).toBe(true);
    const judged = trajectories.filter((t) => t.turnScores.length > 0);
    for (const t of judged) {
      expect(t.reward).toBeCloseTo(t.rewards.score! + 0.5);
      expect(t.rewards.interactionScore).toBe(0.25);
    }
    for (const t of trajectories) expect(t.timeline!.request.at(-1)!.state).toBe("completed");
  });

  it("agent_loop_config_path: TypeScript, also by the field's name of the key", async () => {
    const session = await open({ agent: { agent_loop_config_path: loops, default_agent_loop: "marked" } });
    const { trajectories } = await runTrainingStep(session, session.trainRows, 1, 0);
    expect(trajectories.map((t) => t.extraFields.mark)).toEqual(Array(12).fill(7));
  });

  it("num_repeat_rollouts: so many samples of each prompt", async () => {
    const session = await open({ multi_turn: { num_repeat_rollouts: 2 } });
    const { trajectories } = await runTrainingStep(session, session.trainRows, 1, 0);
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
    expect((await open({ multi_turn })).rollout.multiTurn).toMatchObject({
      interactionInterval: 2,
      interactionProb: 0.5,
      trainOnToolCalls: false,
      useInferenceChatTemplate: true,
    });
    expect((await open({ multi_turn: { enable: false } })).rollout).toMatchObject({
      interactions: null,
      multiTurn: { maxAssistantTurns: 1 },
    });
  });

  it.each([
    [{ multi_turn: { interaction_config_path: "none.yaml" } }, /none\.yaml: cannot be read/],
    [{ multi_turn: { interaction_config_path: loops } }, /makeLoop": is not an interaction/],
    [
      { multi_turn: { interaction_config_path: file("empty.yaml", "a: 1") } },
      /does not list interaction[\s\S]*class_name/,
    ],
    [{ agent: { agent_loop_config_path: file("nameless.yaml", "- class_name: ./mine.ts#makeLoop") } }, /has no name/],
    [{ agent: { agent_loop_config_path: loops, default_agent_loop: "unmarked" } }, /unmarked/],
    [{ multi_turn: { interaction_prob: 2 } }, /interaction_prob/],
  ])("%j is refused before a model is loaded", async (rollout, message) => {
    await expect(
      writeTinyRun(models, { rollout }).then(({ config, folder }) => {
        config.actor_rollout_ref.model.path = "none.gguf";
        return openSession(config, folder);
      }),
    ).rejects.toThrow(message);
  });
});
