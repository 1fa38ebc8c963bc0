import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type ChatMessage, ConfigError, type Trajectory } from "@cria/core";
import { TinyModels } from "@cria/engine/testing";
import { type DumpLine, readDump } from "@cria/records";
import type { AgentContext } from "@cria/rollout";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadPolicy } from "../policy/load-policy.js";
import { rollOut } from "../step/roll-out.js";
import { defineTask } from "../task/task.js";
import { train } from "./train.js";
import type { TrainOptions } from "./train-options.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

let model: string;
beforeAll(async () => {
  model = await models.write({ seed: 5, embeddingScale: 0.25 });
});

const rows = ["a", "bb", "ccc"].map((question) => ({ question }));
type Row = (typeof rows)[number];
const user = (content: string): ChatMessage => ({ role: "user", content });
const shareOfAscii = (text: string) => [...text].filter((c) => c < "\x80").length / Math.max(1, text.length);

/** Holds two parallel conversations; one of them branches in two. */
async function branchingAgent({ row, session }: AgentContext<Row>, delays = [0, 0]): Promise<number> {
  const ask = async (...messages: ChatMessage[]) => (await session.complete({ messages, maxTokens: 4 })).message;
  const [plan, found] = await Promise.all(
    [row.question, "aside"].map(async (question, i) => {
      await sleep(delays[i]);
      return ask(user(question));
    }),
  );
  const ends = [];
  for (const next of ["x", "y"]) ends.push(await ask(user(row.question), plan!, user(next)));
  return shareOfAscii([plan!, found!, ...ends].map(({ content }) => content).join(""));
}

let count = 0;
const options = (more: object = {}, rollout: object = {}) => ({
  model,
  rows,
  agent: (context: AgentContext<Row>) => branchingAgent(context),
  folder: join(models.folder, `agent-runs-${count++}`),
  lora: { rank: 4, alpha: 8 },
  steps: 2,
  batchSize: 3,
  n: 3,
  learningRate: 1e-2,
  seed: 1,
  threads: 1,
  config: {
    data: { max_prompt_length: 64, max_response_length: 64 },
    actor_rollout_ref: { rollout: { max_num_seqs: 16, ...rollout } },
  },
  ...more,
});
const hash = (file: string | null) => createHash("sha256").update(readFileSync(file!)).digest("hex");
const failureOf = (work: PromiseLike<unknown>) =>
  work.then(
    () => null,
    (error: unknown) => error,
  );

describe("train with an agent", () => {
  it("learns from every branch, to the same bits for any timing of the agent", async () => {
    const hashes: string[] = [];
    for (const delays of [
      [0, 0],
      [12, 0],
      [0, 12],
    ]) {
      const run = train(options({ agent: (context: AgentContext<Row>) => branchingAgent(context, delays) }));
      const { adapter, metrics } = await run;
      expect(metrics["rollout/failed"]).toBe(0);
      expect(metrics["actor/grad_norm"]).toBeGreaterThan(0);
      expect(metrics["agent_loop/chat_calls/mean"]).toBe(4);
      expect(metrics["agent_loop/chat_roots/mean"]).toBe(2);
      hashes.push(hash(adapter));
    }
    expect(new Set(hashes).size).toBe(1);
  });

  it("with a lag it answers for the version of its step, to the same bits for any timing", async () => {
    const trainAhead = async (delays: number[], rollout = {}) => {
      const agent = (context: AgentContext<Row>) => branchingAgent(context, delays);
      const { adapter, metrics } = await train(options({ agent, lag: 1, steps: 4, batchSize: 1 }, rollout));
      expect(metrics["training/off_policy/trajectory_staleness/mean"]).toBe(1);
      return hash(adapter);
    };
    const first = await trainAhead([0, 0]);
    expect(await trainAhead([15, 0])).toBe(first);
    expect(await trainAhead([0, 4], { max_num_seqs: 2 })).toBe(first);
    expect(hash((await train(options({ steps: 4, batchSize: 1 }))).adapter)).not.toBe(first);
  });

  it("branch_credit decides which answers learn; each way trains another adapter", async () => {
    const hashes = new Set<string>();
    for (const branch_credit of ["all_branches", "last_branch", "nodes", "multi_trajectories"] as const)
      hashes.add(hash((await train(options({ steps: 1 }, { branch_credit }))).adapter));
    // Without rewards for answers, the others equal "all_branches" up to rounding.
    expect(hashes.size).toBeGreaterThanOrEqual(2);
    const wrong = (branch_credit: string, algorithm: object) =>
      failureOf(train(options({ config: { algorithm, actor_rollout_ref: { rollout: { branch_credit } } } })));
    for (const branch_credit of ["nodes", "multi_trajectories"])
      for (const algorithm of [{ adv_estimator: "rloo" }, { use_kl_in_reward: true }]) {
        const error = await wrong(branch_credit, algorithm);
        expect(error).toBeInstanceOf(ConfigError);
        expect(error).toMatchObject({
          code: "config/bad-value",
          subject: `actor_rollout_ref.rollout.branch_credit ${branch_credit}`,
        });
      }
  });

  it("branch_credit multi_trajectories compares the last conversations, and all answers learn from that", async () => {
    /** Asks in two conversations, which earn rewards of their own; a sub-agent's answer begins a third. */
    const agent = async ({ row, session }: AgentContext<Row>) => {
      const rewarded = async (...messages: ChatMessage[]) => {
        const { message, node } = await session.complete({ messages, maxTokens: 4 });
        const value = 3 * shareOfAscii(message.content);
        session.reward(value, node);
        return { message, value };
      };
      const aside = await rewarded(user("aside"));
      const first = await rewarded(user(row.question));
      const fork = await rewarded(user(row.question), first.message, user("x"));
      const last = await rewarded(user(row.question), first.message, user("y"));
      const score = shareOfAscii(fork.message.content);
      return { score, aside: aside.value + fork.value, along: first.value + last.value };
    };
    const measure = async (branch_credit: string, normalized: boolean) => {
      const folder = join(models.folder, `multi-trajectories-${branch_credit}-${normalized}`);
      const { config } = options({}, { branch_credit });
      const algorithm = { norm_adv_by_std_in_grpo: normalized };
      const trainer = { rollout_data_dir: folder, rollout_data_detail: "full" };
      await train(options({ steps: 1, agent, config: { ...config, algorithm, trainer } }) as TrainOptions);
      const lines: DumpLine[] = [];
      for await (const line of readDump(join(folder, "1.jsonl"))) lines.push(line);
      expect(lines).toHaveLength(9);
      return lines;
    };
    for (const normalized of [true, false]) {
      const lines = await measure("multi_trajectories", normalized);
      for (const { uid } of lines) {
        const group = lines.filter((line) => line.uid === uid);
        const values = group.map(({ score, extra }) => score! + Number(extra.along));
        const mean = values.reduce((a, b) => a + b, 0) / values.length;
        const deviation = Math.sqrt(values.reduce((sum, x) => sum + (x - mean) ** 2, 0) / (values.length - 1));
        group.forEach(({ segments, response_mask, advantages }, i) => {
          expect(segments!.map(({ parent }) => parent)).toEqual([-1, -1, 1, 1]);
          const expected = (values[i]! - mean) / (normalized ? deviation + 1e-6 : 1);
          for (const [t, bit] of response_mask.entries()) expect(advantages![t]).toBeCloseTo(bit * expected, 4);
        });
      }
      // By the whole episode, the other conversations count too.
      const whole = await measure("all_branches", normalized);
      expect(whole.map(({ extra }) => extra)).toEqual(lines.map(({ extra }) => extra));
      expect(whole.map(({ advantage }) => advantage)).not.toEqual(lines.map(({ advantage }) => advantage));
      expect(lines.some(({ extra }) => extra.aside !== 0)).toBe(true);
    }
  });

  it("an estimator that looks along time goes along paths, and each ends with the episode's reward once", async () => {
    const measure = async (strategy: string, gamma: number) => {
      const { config } = options();
      const algorithm = { adv_estimator: "reinforce_plus_plus", gamma };
      const agent = (context: AgentContext<Row>) => branchingAgent(context).then(() => 1);
      const given = { ...config, algorithm, reward_model: { aggregation: { strategy } } };
      return (await train(options({ steps: 1, agent, config: given }))).metrics;
    };
    // A path has at most two answers of four tokens.
    const halved = await measure("last_token", 0.5);
    expect(halved["critic/returns/max"]).toBe(1);
    expect(halved["critic/returns/min"]).toBeGreaterThanOrEqual(0.5 ** 7);
    // A reward spread over all tokens is not at the end of a path: each path has only a share.
    expect((await measure("uniform", 1))["critic/returns/max"]).toBeLessThan(1);
  });

  it("an agent that never calls the policy is an error at step 1, with its name and what to use", async () => {
    const error = await failureOf(train(options({ agent: () => 0.5 })));
    expect(error).toMatchObject({
      code: "rollout/never-called",
      subject: expect.stringMatching(/^step 1: agent "/),
      received: "none in 9 conversations",
    });
  });

  it("an episode without a call does not count as 0 in its group: it is left out, and counted", async () => {
    let episodes = 0;
    const agent = async ({ session, row }: AgentContext<Row>) => {
      // One of every three agents does not call the policy, and gets the highest score.
      if (episodes++ % 3 === 0) return 1;
      await session.complete({ messages: [user(row.question)], maxTokens: 4 });
      return 0.5;
    };
    const run = train(options({ agent, steps: 1, n: 6 }));
    const { metrics } = await run;
    expect(metrics).toMatchObject({ "rollout/silent": 6, "rollout/kept": 12, "rollout/failed": 0 });
    expect(metrics["critic/score/mean"]).toBe(0.5);
    // All other members of a group have the same score.
    expect(metrics["critic/advantages/max"]).toBeCloseTo(0, 6);
  });

  it("limits of time and calls come from the config", async () => {
    const endless = async ({ session, row }: AgentContext<Row>) => {
      const messages = [user(row.question)];
      for (;;) {
        const { message } = await session.complete({ messages, maxTokens: 1 });
        messages.push(message, user("on"));
      }
    };
    const capped = train(options({ agent: endless, steps: 1 }, { agent: { max_calls: 2 } }));
    const { metrics } = await capped;
    expect(metrics["rollout/failed"]).toBe(0);
    expect(metrics["critic/score/mean"]).toBe(0);
    const late = train(
      options({ agent: () => new Promise<number>(() => undefined), steps: 1 }, { agent: { timeout_s: 0.05 } }),
    );
    expect(await failureOf(late)).toMatchObject({
      code: "rollout/all-failed",
      received: expect.stringContaining("0.05 s"),
    });
  });

  it("is written to the dump with its conversations, each token once", async () => {
    const run = options({
      steps: 1,
      config: { ...options().config, trainer: { rollout_data_dir: join(models.folder, "dump") } },
    });
    await train(run as TrainOptions);
    const lines: DumpLine[] = [];
    for await (const line of readDump(join(models.folder, "dump", "1.jsonl"))) lines.push(line);
    expect(lines).toHaveLength(9);
    const [first] = lines;
    expect(first!.segments!.length).toBeGreaterThan(2);
    expect(first!.segments!.at(-1)!.end).toBe(first!.token_ids.length);
    expect(first!.messages.at(-1)!.role).toBe("assistant");
  });

  it("a task of an agent is rolled out by an own loop too", async () => {
    const policy = await loadPolicy(model, { lora: { rank: 4 }, contextSize: 256, threads: 1 });
    const task = defineTask({
      rows,
      agent: (context) => branchingAgent(context),
      maxPromptLength: 64,
      maxResponseLength: 64,
    });
    try {
      const groups = await rollOut(policy, task, await task.load(), { n: 2 });
      expect(groups.trajectories).toHaveLength(6);
      expect(groups.trajectories.every((t: Trajectory) => t.segments !== undefined)).toBe(true);
    } finally {
      await task.dispose();
      await policy.dispose();
    }
  });

  it("JSON is enforced, and tokens that the grammar decided are trained on only where that is asked for", async () => {
    const schema = {
      type: "object",
      properties: { kind: { enum: ["a", "b"] } },
      required: ["kind"],
      additionalProperties: false,
    };
    const said: string[] = [];
    const agent = async ({ row, session }: AgentContext<Row>) => {
      const request = { messages: [user(row.question)], responseFormat: { type: "json_schema" as const, schema } };
      const { message, constrained, tokenIds } = await session.complete(request);
      expect(constrained).toHaveLength(tokenIds.length);
      said.push(message.content);
      return 1;
    };
    const policy = await loadPolicy(model, { lora: { rank: 4 }, contextSize: 256, threads: 1 });
    const task = defineTask({ rows, agent, maxPromptLength: 64, maxResponseLength: 64 });
    try {
      const environment = await task.open(policy);
      const countTaught = async (trainOnConstrained: boolean) => {
        const given = { ...environment, agent: { ...environment.agent!, trainOnConstrained } };
        const { trajectories } = await rollOut(policy, given, await task.load(), { n: 2 });
        return trajectories.map(({ responseMask }) => responseMask.reduce((sum, bit) => sum + bit, 0));
      };
      const [free, all] = [await countTaught(false), await countTaught(true)];
      expect(said).toHaveLength(12);
      for (const text of said) expect(JSON.parse(text)).toEqual({ kind: expect.stringMatching(/^[ab]$/) });
      for (const [i, count] of free.entries()) expect(count).toBeLessThan(all[i]!);
    } finally {
      await task.dispose();
      await policy.dispose();
    }
  });

  it("refuses an agent without rows, beside a task, and beside tools", async () => {
    const { agent, ...rest } = options();
    expect(await failureOf(train(rest))).toMatchObject({
      code: "config/bad-value",
      subject: "train: rows, agent",
      received: "rows",
    });
    const task = defineTask({ rows, reward: () => 1 });
    expect(await failureOf(train({ ...rest, agent, task }))).toMatchObject({ received: "task, rows, agent" });
    expect(() => defineTask({ rows, agent, system: "x" })).toThrow(
      expect.objectContaining({ code: "config/bad-value", subject: "defineTask: system", received: '"x"' }),
    );
  });
});
