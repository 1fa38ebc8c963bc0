import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { ChatMessage } from "@cria/core";
import { TinyModels } from "@cria/engine/testing";
import { type DumpLine, readDump } from "@cria/records";
import type { AgentContext } from "@cria/rollout";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadPolicy } from "../policy/load-policy.js";
import { advantages } from "../step/advantages.js";
import { rollOut } from "../step/roll-out.js";
import { defineTask } from "../task/task.js";
import { train } from "./train.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

let model: string;
beforeAll(async () => {
  model = await models.write({ seed: 5, embeddingScale: 0.25 });
});

const rows = ["a", "bb"].map((question) => ({ question }));
type Row = (typeof rows)[number];
const user = (content: string): ChatMessage => ({ role: "user", content });

/** The player whose text sorts first wins. Zero-sum: the rewards of an episode add up to 0. */
async function play({ row, session }: AgentContext<Row>) {
  const said: Record<string, string> = {};
  for (const role of ["x", "o"]) {
    const { message } = await session.complete({ messages: [user(`${role} ${row.question}`)], maxTokens: 4, role });
    said[role] = message.content;
  }
  const won = said.x! < said.o! ? 1 : -1;
  return { rewards: { x: won, o: -won } };
}

/** Data source of rows that name none. */
const SOURCE = "task";
let count = 0;
const options = (more: object = {}, algorithm: object = {}, trainer: object = {}) => ({
  model,
  rows,
  agent: play,
  folder: join(models.folder, `self-play-${count++}`),
  lora: { rank: 4, alpha: 8 },
  steps: 4,
  batchSize: 2,
  n: 2,
  learningRate: 1e-2,
  seed: 1,
  threads: 1,
  config: {
    algorithm: { adv_estimator: "rae", ...algorithm },
    data: { max_prompt_length: 64, max_response_length: 64 },
    actor_rollout_ref: { rollout: { max_num_seqs: 16 } },
    trainer: { rollout_data_dir: join(models.folder, `dump-${count}`), ...trainer },
  },
  ...more,
});

const hash = (file: string | null) => createHash("sha256").update(readFileSync(file!)).digest("hex");

async function trainSteps(given: ReturnType<typeof options>) {
  const steps: Record<string, number>[] = [];
  const run = train(given);
  for await (const { metrics } of run) steps.push(metrics);
  const { adapter } = await run;
  return { steps, sha: hash(adapter) };
}

async function readStep(folder: string, step: number): Promise<DumpLine[]> {
  const lines: DumpLine[] = [];
  for await (const line of readDump(join(folder, `${step}.jsonl`))) lines.push(line);
  return lines;
}

/** Lists the reward and the advantages of each episode in a dump, by role. */
const listRoles = (lines: readonly DumpLine[]) =>
  lines.flatMap(({ turns, turn_scores, advantages }) =>
    turns.flatMap(({ call, start, end }) => {
      if (!call) return [];
      const own = turn_scores.filter(({ token_index }) => token_index >= start && token_index < end);
      expect(own).toHaveLength(1);
      return [{ role: call.request.role as string, reward: own[0]!.value, advantages: advantages!.slice(start, end) }];
    }),
  );

describe("one policy that plays two roles", () => {
  it("learns each role from its own reward, less the role's baseline", async () => {
    const folder = join(models.folder, "dump-roles");
    const { steps } = await trainSteps(
      options({ steps: 3 }, { rae_decay: 0.5 }, { rollout_data_dir: folder, rollout_data_detail: "full" }),
    );
    const baselines: Record<string, number> = { x: 0, o: 0 };
    const seen = new Set<number>();
    for (const [i, metrics] of steps.entries()) {
      const returns: Record<string, number[]> = { x: [], o: [] };
      for (const { role, reward, advantages } of listRoles(await readStep(folder, i + 1))) {
        for (const value of advantages) expect(value).toBeCloseTo(reward - baselines[role]!, 5);
        baselines[role] = 0.5 * baselines[role]! + 0.5 * reward;
        returns[role]!.push(reward);
        seen.add(reward);
      }
      expect(metrics["critic/score/mean"]).toBe(0);
      expect(metrics["actor/grad_norm"]).toBeGreaterThan(0);
      for (const role of ["x", "o"]) {
        const name = `critic/rae/${SOURCE}/${role}`;
        expect(returns[role]).toHaveLength(4);
        expect(metrics[`${name}/return/mean`]).toBe(returns[role]!.reduce((a, b) => a + b) / 4);
        expect(metrics[`${name}/baseline`]).toBeCloseTo(baselines[role]!, 12);
      }
    }
    expect(seen).toEqual(new Set([1, -1]));
  });

  it.each([{}, { lag: 1 }])("goes on from a checkpoint to the same bits: %j", async (more) => {
    const first = options({ save: { every: 1 }, ...more });
    const whole = await trainSteps(first);
    const resume = join(first.folder, "cria", "default", "checkpoints", "global_step_2");
    const { data } = JSON.parse(readFileSync(join(resume, "data.json"), "utf8"));
    const readBaselines = (metrics: Record<string, number>) =>
      Object.fromEntries(
        ["x", "o"].map((role) => [`${SOURCE}/${role}`, metrics[`critic/rae/${SOURCE}/${role}/baseline`]]),
      );
    expect(data.estimator).toEqual(readBaselines(whole.steps[1]!));
    const resumed = await trainSteps(options({ save: { every: 1 }, ...more, resume }));
    expect(resumed.steps.map(readBaselines)).toEqual(whole.steps.slice(2).map(readBaselines));
    expect(resumed.sha).toBe(whole.sha);
  });

  it("learns again from groups of earlier steps, whose roles are paid against each other", async () => {
    const { steps } = await trainSteps(options({ steps: 2, n: 1 }, { replay: { share: 1 } }));
    expect(steps[1]!["replay/groups"]).toBe(2);
  });

  it("passes the state from step to step in an own loop", async () => {
    const policy = await loadPolicy(model, { lora: { rank: 4 }, contextSize: 256, threads: 1 });
    const task = defineTask({ rows, agent: play, maxPromptLength: 64, maxResponseLength: 64 });
    try {
      const groups = await rollOut(policy, task, await task.load(), { n: 2 });
      const first = advantages.rae(groups);
      const second = advantages.rae(groups, { state: first.state, baselineDecay: 0.5 });
      expect(Object.keys(first.state!).sort()).toEqual([`${SOURCE}/o`, `${SOURCE}/x`]);
      expect(second.advantages).not.toEqual(first.advantages);
      expect(advantages.grpo(groups, { state: first.state }).state).toBe(first.state);
    } finally {
      await task.dispose();
      await policy.dispose();
    }
  });
});
