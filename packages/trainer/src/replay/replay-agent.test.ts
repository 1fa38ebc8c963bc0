import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ChatMessage } from "@cria/core";
import { TinyModels } from "@cria/engine/testing";
import { type DumpLine, readDump } from "@cria/records";
import type { AgentContext } from "@cria/rollout";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { train } from "../run/train.js";
import type { TrainOptions } from "../run/train-options.js";
import { openReplay } from "./open-replay.js";
import type { Replay } from "./replay.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

const user = (content: string): ChatMessage => ({ role: "user", content });
const rows = ["a", "bb"].map((question) => ({ question }));
const look = {
  type: "function" as const,
  function: { name: "look", description: "Looks.", parameters: { type: "object", properties: {} } },
};

let runs = 0;
/** Two conversations at once, one of which goes on in two ways; several answers to one question; JSON; a tool of its own. */
async function agent({ row, session }: AgentContext<(typeof rows)[number]>): Promise<number> {
  runs++;
  const ask = async (messages: ChatMessage[], more = {}) =>
    (await session.complete({ messages, maxTokens: 4, ...more })).message;
  const [plan] = await Promise.all(
    [user(row.question), user("aside")].map(async (message, i) => {
      await sleep((runs + i) % 3);
      return ask([message]);
    }),
  );
  const ways = ["x", "y"].map((next) => ask([user(row.question), plan!, user(next)]));
  const choices = [0, 1].map((choice) => ask([user(row.question)], { choice }));
  const formed = ask([user("in JSON")], { responseFormat: { type: "json_object" }, maxTokens: 8 });
  const looked = ask([{ role: "system", content: "s" }, user("look")], { tools: [look] });
  const said = await Promise.all([...ways, ...choices, formed, looked]);
  said.push(await ask([user(row.question), plan!, user("z")]));
  return said.map(({ content }) => content).join("").length % 7;
}

const given = async (branch_credit: "all_branches" | "last_branch" | "nodes"): Promise<TrainOptions> => ({
  model: await models.write({ seed: 5, embeddingScale: 0.25 }),
  rows,
  agent,
  folder: join(models.folder, "replayed"),
  name: branch_credit,
  lora: { rank: 4, alpha: 8 },
  steps: 2,
  batchSize: 2,
  n: 2,
  learningRate: 1e-2,
  seed: 1,
  threads: 1,
  config: {
    data: { max_prompt_length: 512, max_response_length: 64 },
    actor_rollout_ref: { rollout: { max_num_seqs: 8, branch_credit, train_on_constrained_tokens: false } },
    // A step that is trained again would run its agents.
    trainer: { save_freq: 1 },
  },
});

async function open(
  branchCredit: "all_branches" | "last_branch" | "nodes",
): Promise<{ replay: Replay; lines: DumpLine[] }> {
  const options = await given(branchCredit);
  const { folder } = await train(options);
  const lines: DumpLine[] = [];
  for await (const line of readDump(join(folder, "rollouts", "2.jsonl"))) lines.push(line);
  return { lines, replay: await openReplay(folder, { train: options }) };
}

let replay: Replay;
let lines: DumpLine[];
beforeAll(async () => {
  ({ replay, lines } = await open("all_branches"));
});
afterAll(() => replay?.close());

async function expectEqual(opened: Replay, recorded: readonly DumpLine[]): Promise<void> {
  const before = runs;
  const results = await opened.replay(recorded);
  expect(results.map(({ difference, otherwise }) => difference ?? otherwise)).toEqual(recorded.map(() => null));
  expect(results.every(({ equal, sampled }) => equal && sampled > 0)).toBe(true);
  expect(runs).toBe(before);
}

describe("a replay of an agent", () => {
  it("is equal bit for bit, and does not run the agent", async () => {
    expect(lines).toHaveLength(4);
    for (const { segments, turns } of lines) {
      expect(segments!.length).toBeGreaterThan(5);
      const calls = turns.flatMap(({ call }) => call ?? []);
      expect([calls.length, calls.filter(({ last }) => last).length]).toEqual([9, 1]);
    }
    await expectEqual(replay, lines);
    const [some] = await replay.replay([lines[0]!], { until: 40 });
    expect(some).toMatchObject({ equal: true, tokens: 40 });
  });

  it("knows which conversation came last", async () => {
    const opened = await open("last_branch");
    await expectEqual(opened.replay, opened.lines);
    await opened.replay.close();
  });

  it("finds one token, one logprob, one mask and one message that are others, and names them", async () => {
    const [line] = lines;
    const t = line!.response_mask.indexOf(1);
    const bits = new Int32Array(Float32Array.of(line!.rollout_logprobs[t]!).buffer);
    bits[0]! += 1;
    const [token] = await replay.replay([
      { ...line!, token_ids: line!.token_ids.with(t, (line!.token_ids[t]! + 1) % 9) },
    ]);
    expect(token).toMatchObject({ equal: false, difference: { token: t } });
    const logprobs = line!.rollout_logprobs.with(t, new Float32Array(bits.buffer)[0]!);
    const [logprob] = await replay.replay([{ ...line!, rollout_logprobs: logprobs }]);
    expect(logprob).toMatchObject({ equal: false, difference: { token: t } });
    const [mask] = await replay.replay([{ ...line!, response_mask: line!.response_mask.with(t, 0) }]);
    expect(mask).toMatchObject({ equal: false, difference: null, otherwise: { field: `response_mask[${t}]` } });
    const bend = (role: ChatMessage["role"], s: number) =>
      line!.segments!.map((segment, i) => ({
        ...segment,
        messages: segment.messages.map((message) =>
          i === s && message.role === role ? { ...message, content: `${message.content}!` } : message,
        ),
      }));
    const at = line!.segments!.findIndex(({ messages }) => messages.some(({ role }) => role === "assistant"));
    const [answer] = await replay.replay([{ ...line!, segments: bend("assistant", at) }]);
    expect(answer).toMatchObject({
      equal: false,
      otherwise: { field: expect.stringMatching(/^segments\[\d+\]\.messages/) },
    });
    // A question that was another one has other tokens.
    const [question] = await replay.replay([{ ...line!, segments: bend("user", 0) }]);
    expect(question).toMatchObject({ equal: false, difference: { token: expect.any(Number) } });
  });

  it("is refused where its line does not say the calls, and does not go on from a token", async () => {
    const [line] = lines;
    const turns = line!.turns.map(({ call: _, ...turn }) => turn);
    await expect(replay.replay([{ ...line!, turns }])).rejects.toMatchObject({ code: "replay/not-recorded" });
    const t = line!.response_mask.indexOf(1);
    await expect(replay.fork(line!, t)).rejects.toMatchObject({ code: "replay/own-loop" });
    expect(await replay.alternatives(line!, t, { count: 3 })).toHaveLength(3);
  });
});
