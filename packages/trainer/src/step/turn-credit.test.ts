import { join } from "node:path";
import { type AdvantageInputs, defineEstimator } from "@cria/algorithms";
import { hashSeed } from "@cria/core";
import { TinyModels } from "@cria/engine/testing";
import { type DumpLine, describeTrajectories, readDump } from "@cria/records";
import type { AgentContext } from "@cria/rollout";
import { interaction } from "@cria/tools";
import { afterAll, describe, expect, it } from "vitest";
import { train } from "../run/train.js";
import type { TrainOptions } from "../run/train-options.js";
import { defineTask } from "../task/task.js";
import { openFakeTraining } from "../testing/fake-training.js";
import { runTrainingStep } from "./training-step.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

/**
 * Makes an estimator: a turn's advantage is the sum of its own and later turns' rewards, minus the mean of the group's
 * turns with the same number.
 */
function makeTurnEstimator(seen: AdvantageInputs["turns"][]) {
  return defineEstimator({
    name: "by turn",
    comparesGroup: true,
    estimate: ({ turns, groups, offsets, responseMask }) => {
      seen.push(turns);
      const advantages = new Float32Array(responseMask.length);
      const values = turns.map((own) => own.map(({ scores }) => scores));
      for (const [i, own] of turns.entries())
        for (let k = own.length - 1; k >= 0; k--)
          if (own[k]!.parent >= 0) values[i]![own[k]!.parent]! += values[i]![k]!;
      for (const [i, own] of turns.entries()) {
        for (const [k, { start, end }] of own.entries()) {
          const group = values.filter((_, j) => groups[j] === groups[i]).flatMap((all) => all[k] ?? []);
          const mean = group.reduce((sum, value) => sum + value, 0) / group.length;
          for (let t = offsets[i]! + start; t < offsets[i]! + end; t++)
            if (responseMask[t]) advantages[t] = values[i]![k]! - mean;
        }
      }
      return { advantages };
    },
  });
}

const rows = ["a", "bb"].map((question) => ({ question }));

async function trainBy(
  more: TrainOptions,
): Promise<{ lines: DumpLine[]; turns: NonNullable<AdvantageInputs["turns"]> }> {
  const seen: AdvantageInputs["turns"][] = [];
  const { folder } = await train({
    model: await models.write({ seed: 5, embeddingScale: 0.25 }),
    folder: join(models.folder, "turns"),
    lora: { rank: 4, alpha: 8 },
    steps: 1,
    batchSize: 2,
    n: 3,
    seed: 1,
    threads: 1,
    advantages: makeTurnEstimator(seen),
    ...more,
    config: {
      data: { max_prompt_length: 64, max_response_length: 64 },
      actor_rollout_ref: { rollout: { max_num_seqs: 8, max_tokens_per_turn: 4 } },
      trainer: { rollout_data_detail: "full" },
    },
  });
  const lines: DumpLine[] = [];
  for await (const line of readDump(join(folder, "rollouts", "1.jsonl"))) lines.push(line);
  return { lines, turns: seen[0]! };
}

/** A score by what was said: conversations end in any order. */
const judge = (...said: string[]) => hashSeed(...said) / 2 ** 32;

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
const normalize = (value: number, values: readonly number[]) => {
  const variance = values.reduce((sum, other) => sum + (other - mean(values)) ** 2, 0) / (values.length - 1);
  return (value - mean(values)) / (Math.sqrt(variance) + 1e-6);
};

/** Describes the turns of a dump's line: own reward, sum of rewards from the turn on, and tokens before it. */
function describeTurns({ turns, token_level_rewards, token_ids }: DumpLine) {
  const sum = (from: number, to?: number) => token_level_rewards.slice(from, to).reduce((a, b) => a + b, 0);
  return turns
    .filter(({ role }) => role === "assistant")
    .map(({ start, end }) => ({
      start,
      end,
      given: sum(start, end),
      rest: sum(start),
      history: token_ids.slice(0, start).join(),
    }));
}

describe("built-in estimators give credit by turn", () => {
  /** Expected advantage of a turn's tokens, computed from the lines of its group. */
  const expected: Record<string, (line: DumpLine, turn: number, group: readonly DumpLine[]) => number> = {
    gigpo: (line, turn, group) => {
      const own = describeTurns(line)[turn]!;
      const alike = group.flatMap(describeTurns).filter(({ history }) => history === own.history);
      return line.reward! - mean(group.map(({ reward }) => reward!)) + own.rest - mean(alike.map(({ rest }) => rest));
    },
    mt_grpo: (line, turn, group) => {
      const outcome = ({ rewards }: DumpLine) => rewards.outcome + rewards.length;
      const given = (other: DumpLine) => describeTurns(other)[turn]!.given - (turn === 1 ? outcome(other) : 0);
      return normalize(outcome(line), group.map(outcome)) + normalize(given(line), group.map(given));
    },
    max_rl: (line, _, group) => {
      const rewards = group.map(({ reward }) => reward!);
      return (line.reward! - mean(rewards)) / mean(rewards);
    },
  };

  it.each(Object.keys(expected))("%s, at the tokens of each turn", async (advantages) => {
    const task = defineTask({
      rows,
      reward: ({ answer }) => judge("whole", answer),
      maxTurns: 2,
      interaction: interaction({ reply: ({ answer }) => ({ content: "and?", score: judge("turn", answer) }) }),
    });
    const { lines } = await trainBy({ task, advantages });
    const seen = new Set<number>();
    for (const line of lines) {
      const group = lines.filter(({ uid }) => uid === line.uid);
      const turns = describeTurns(line);
      expect(turns).toHaveLength(2);
      for (const [k, { start, end }] of turns.entries()) {
        const value = expected[advantages]!(line, k, group);
        seen.add(value);
        for (let t = start; t < end; t++) expect(line.advantages![t]).toBeCloseTo(value, 4);
      }
      expect(line.advantages!.filter((_, t) => line.response_mask[t] === 0).every((value) => value === 0)).toBe(true);
    }
    expect(seen.size).toBeGreaterThan(advantages === "max_rl" ? 3 : 6);
  });
});

it("gigpo compares turns after other histories whose tools name one state", async () => {
  const walk = (room: string, by: string) =>
    `<tool_call>\n${JSON.stringify({ name: "walk", arguments: { room, by } })}\n</tool_call>`;
  const openings = [walk("hall", "door"), walk("hall", "window"), walk("yard", "gate")];
  let next = 0;
  const training = await openFakeTraining(models, {
    prompts: ["a"],
    reward: "return Number(text.match(/[135]/g).at(-1));",
    reply: ({ turn, text }) =>
      turn === 0 ? openings[next++]! : { door: "1", window: "3", gate: "5" }[text.match(/You took the (\w+)/)![1]!]!,
    files: {
      "walk.ts": `
        import { tool } from "@cria/tools";
        import { z } from "zod";
        export const walk = tool({
          name: "walk",
          description: "Walks.",
          inputSchema: z.object({ room: z.string(), by: z.string() }),
          execute: ({ room, by }) => ({ text: "You took the " + by, state: room }),
        });`,
      "tools.yaml": 'tools: [{ class_name: "./walk.ts#walk" }]',
    },
    overrides: [
      "actor_rollout_ref.rollout.n=3",
      "actor_rollout_ref.rollout.multi_turn.tool_config_path={folder}/tools.yaml",
      "algorithm.adv_estimator=gigpo",
    ],
  });
  try {
    const { trajectories, tokenDetails, metrics } = await runTrainingStep(training, {
      rows: training.trainRows,
      step: 1,
      epoch: 0,
    });
    const turns = trajectories.map((t, i) => {
      const said = t.timeline!.turns.filter(({ role }) => role === "assistant");
      const advantages = said.map(({ start, end }) => [
        ...new Set(Array.from(tokenDetails[i]!.advantages!).slice(start, end)),
      ]);
      return { state: t.timeline!.turns[1]!.state, reward: t.reward, advantages };
    });
    // Rewards 1, 3 and 5: the first turns have the prompt as their state; two of the second turns have the state
    // "hall".
    expect(turns.sort((a, b) => a.reward - b.reward)).toEqual([
      { state: "hall", reward: 1, advantages: [[-2 - 2], [-2 - 1]] },
      { state: "hall", reward: 3, advantages: [[0], [0 + 1]] },
      { state: "yard", reward: 5, advantages: [[2 + 2], [2]] },
    ]);
    expect(metrics["critic/anchored_turns"]).toBeCloseTo(5 / 6);
    const lines = describeTrajectories(trajectories, {
      step: 1,
      rows: training.trainRows,
      tools: training.environment.tools,
      engine: training.policy.engine,
    });
    expect(lines.map((line) => line.turns[1]!.state).sort()).toEqual(["hall", "hall", "yard"]);
  } finally {
    await training.dispose();
  }
});

describe("an estimator of your own gives credit by turn", () => {
  it("to the turns of a task, by the scores of its interaction", async () => {
    const task = defineTask({
      rows,
      reward: () => 0,
      maxTurns: 2,
      interaction: interaction({ reply: ({ answer }) => ({ content: "and?", score: judge("turn", answer) }) }),
    });
    const { lines, turns } = await trainBy({ task });
    expect(turns.map((own) => own.map(({ parent }) => parent))).toEqual(lines.map(() => [-1, 0]));
    for (const [i, line] of lines.entries()) {
      const said = line.turns.filter(({ role }) => role === "assistant");
      expect(turns[i]).toEqual(
        said.map(({ start, end }, k) => ({
          start,
          end,
          segment: 0,
          parent: k - 1,
          tools: 0,
          scores: line.turn_scores.find(({ token_index: t }) => t >= start && t < end)?.value ?? 0,
        })),
      );
      const worth = (own: (typeof turns)[number], k: number) =>
        own.slice(k).reduce((sum, { scores }) => sum + scores, 0);
      for (const [k, { start, end }] of said.entries()) {
        const group = turns.filter((_, j) => lines[j]!.uid === line.uid).map((own) => worth(own, k));
        const mean = group.reduce((sum, value) => sum + value, 0) / group.length;
        for (let t = start; t < end; t++) expect(line.advantages![t]).toBeCloseTo(worth(turns[i]!, k) - mean, 5);
      }
      expect(line.advantages!.filter((_, t) => line.response_mask[t] === 0).every((value) => value === 0)).toBe(true);
    }
    expect(new Set(lines.flatMap(({ advantages }) => advantages!)).size).toBeGreaterThan(4);
  });

  it("to an agent's answers along its branches", async () => {
    const agent = async ({ row, session }: AgentContext<(typeof rows)[number]>) => {
      const plan = await session.complete({ messages: [{ role: "user", content: row.question }] });
      for (const [i, next] of ["x", "y"].entries()) {
        const messages = [{ role: "user", content: row.question } as const, plan.message];
        const { node } = await session.complete({ messages: [...messages, { role: "user", content: next }] });
        session.reward(i + 1, node);
      }
      return 0;
    };
    const { lines, turns } = await trainBy({ rows, agent });
    for (const [i, line] of lines.entries()) {
      expect(line.segments).toHaveLength(3);
      expect(turns[i]!.map(({ segment, parent }) => [segment, parent])).toEqual([
        [0, -1],
        [1, 0],
        [2, 0],
      ]);
      expect(turns[i]!.map(({ scores }) => scores).sort()).toEqual([0, 1, 2]);
    }
  });
});
