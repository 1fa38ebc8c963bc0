import { FakeEngine } from "@cria/core/testing";
import { TinyModels } from "@cria/engine/testing";
import type { RewardRequest } from "@cria/rollout";
import { makeRewardManager } from "@cria/rollout";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import fc from "fast-check";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { listWarnings } from "../config/list-warnings.js";
import { trainConfigSchema } from "../config/train-config.js";
import { runTrainingStep } from "../step/training-step.js";
import { type ChatServer, startChatServer } from "../testing/chat-server.js";
import { openTinyTraining } from "../testing/tiny-training.js";
import { GroupJudge, type GroupWriter, writeGroupsWithEngine } from "./group-judge.js";
import { defaultRubric, GroupPrompt } from "./group-prompt.js";
import { JudgedRewards } from "./judged-rewards.js";
import { type GroupFormat, makeGroupGrammar, parseGroup } from "./parse-group.js";
import { JudgementError } from "./reward-model.js";
import { RewardModels } from "./reward-models.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());
const servers: ChatServer[] = [];
afterEach(() => Promise.all(servers.splice(0).map((server) => server.close())));

const never = new AbortController().signal;
const ranks: GroupFormat = { output: "ranks", minScore: 0, maxScore: 10 };
const scores: GroupFormat = { output: "scores", minScore: 0, maxScore: 10 };

/** An attempt at a task: all begin with a call and its answer. */
const attempt = (answer: string, order = 0, uid = "test/1"): RewardRequest => ({
  dataSource: "test",
  solutionText: answer,
  groundTruth: "42",
  extraInfo: {
    messages: [
      { role: "user", content: "6 * 7?" },
      { role: "assistant", content: "I calculate." },
      { role: "tool", content: "The tool says 42." },
      { role: "assistant", content: answer },
    ],
    numTurns: 4,
    finishReason: "stop",
    toolRewards: [],
    turnScores: [],
    interactionScore: null,
    toolScore: null,
  },
  responseLength: 3,
  uid,
  order,
  place: `sample ${order}`,
});

/** Attempts in the order in which a prompt shows them. */
const readAttempts = (text: string) =>
  [...text.matchAll(/<attempt id="(\d+)">\n([\s\S]*?)<\/attempt>/g)].map(([, id, body]) => ({
    id: Number(id),
    body: body!,
  }));

/** Ranks attempts by the number that they say, the larger the better. */
function rankByNumber(text: string): string {
  const numbers = readAttempts(text).map(({ id, body }) => ({ id, value: Number(/answer (\d+)/.exec(body)![1]) }));
  const sorted = [...numbers].sort((a, b) => b.value - a.value);
  return JSON.stringify(numbers.map(({ id }) => ({ id, rank: sorted.findIndex((each) => each.id === id) + 1 })));
}

interface Scripted {
  prompts: string[];
  judge: GroupJudge;
}

function script(
  reply: (text: string, index: number) => string,
  { output = "ranks", maxGroupTokens = 4096, rubric = defaultRubric } = {} as {
    output?: GroupFormat["output"];
    maxGroupTokens?: number;
    rubric?: string;
  },
): Scripted {
  const prompts: string[] = [];
  const writer: GroupWriter = {
    countTokens: ([message]) => String(message!.content).length,
    write: async ([message]) => {
      prompts.push(String(message!.content));
      return reply(String(message!.content), prompts.length - 1);
    },
  };
  const format = { output, minScore: 0, maxScore: 10 };
  const prompt = new GroupPrompt(null, { ...format, rubric }, "test");
  return { prompts, judge: new GroupJudge(writer, prompt, { ...format, maxGroupTokens }) };
}

describe("a verdict on a group", () => {
  it.each([
    ['[{"id": 1, "rank": 2}, {"id": 2, "rank": 1}, {"id": 3, "rank": 3}]', [0.5, 1, 0]],
    ['<think>[not this]</think>\n```json\n[{"id":"3","rank":1},{"id":1,"rank":1},{"id":2,"rank":3}]\n```', [1, 0, 1]],
  ])("%j is worth %j", (verdict, worth) => expect(parseGroup(verdict, 3, ranks)).toEqual(worth));

  it("of scores goes from 0 at min_score to 1 at max_score; the only attempt of a ranking has 1", () => {
    expect(parseGroup('[{"id": 1, "score": 2.5}, {"id": 2, "score": 10}]', 2, scores)).toEqual([0.25, 1]);
    expect(parseGroup('[{"id": 1, "rank": 1}]', 1, ranks)).toEqual([1]);
  });

  it.each([
    ["the best is 2", "best"],
    ['{"1": 2}', '{"1": 2}'],
    ['[{"id": 1, "rank": 1}]', '[{"id": 1, "rank": 1}]'],
    ['[{"id": 1, "rank": 1}, {"id": 1, "rank": 2}]', "id 1"],
    ['[{"id": 1, "rank": 1}, {"id": 3, "rank": 2}]', '{"id":3,"rank":2}'],
    ['[{"id": 1, "rank": 1}, null]', "null"],
    ["[2, 1]", "2"],
    ['[{"id": 1, "rank": 1}, {"id": 2, "rank": 3}]', '{"id":2,"rank":3}'],
    ['[{"id": 1, "rank": 1}, {"id": 2, "rank": 1.5}]', '{"id":2,"rank":1.5}'],
    ['[{"id": 1, "rank": 1}, {"id": 2, "score": 1}]', '{"id":2,"score":1}'],
    ['Sure! [{"id": 1, "rank": 1}, {"id": 2, "rank": 2}]', "Sure!"],
  ])("%j is refused", (verdict, wrong) => {
    expect(() => parseGroup(verdict, 2, ranks)).toThrow(
      expect.objectContaining({
        code: "reward/bad-verdict",
        verdict,
        summary: expect.stringContaining(wrong),
      }),
    );
  });

  it("is read or refused, for any text", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (verdict) => {
        try {
          for (const score of parseGroup(verdict, 1, scores)) expect(score).toBeGreaterThanOrEqual(0);
        } catch (error) {
          expect(error).toBeInstanceOf(JudgementError);
        }
      }),
      { seed: Number(process.env.CRIA_SEED ?? 1) },
    );
  });
});

describe("a judge of groups", () => {
  it("sees the attempts in one prompt, their common beginning once, and gives each its rank", async () => {
    const { judge, prompts } = script(rankByNumber, { rubric: "Larger numbers are better." });
    const group = [3, 9, 1, 7, 5].map((n, i) => attempt(`answer ${n}`, i));
    const judged = await judge.scoreGroup(group, never);
    expect(judged.map(({ score }) => score)).toEqual([0.25, 1, 0, 0.75, 0.5]);
    expect(prompts).toHaveLength(1);
    for (const once of ["6 * 7?", "The tool says 42.", "Larger numbers are better.", "<reference>\n42\n"])
      expect(prompts[0]!.split(once)).toHaveLength(2);
    expect(prompts[0]).toContain("from 1 (the best) to 5");
    expect(judged[1]!.verdict).toMatch(/^as \d of 5: \[/);
  });

  it("sees them in an order that depends on the prompt, and is the same every time", async () => {
    const orders = new Set<string>();
    const places = new Set<number>();
    for (let i = 0; i < 12; i++) {
      const group = [1, 2, 3, 4].map((n) => attempt(`answer ${n}`, n, `test/${i}`));
      const seen: string[] = [];
      for (let again = 0; again < 2; again++) {
        const { judge, prompts } = script(rankByNumber);
        await judge.scoreGroup(group, never);
        seen.push(
          readAttempts(prompts[0]!)
            .map(({ body }) => /answer (\d)/.exec(body)![1])
            .join(""),
        );
      }
      expect(seen[0]).toBe(seen[1]);
      orders.add(seen[0]!);
      places.add(seen[0]!.indexOf("1"));
    }
    expect(orders.size).toBeGreaterThan(4);
    expect([...places].sort()).toEqual([0, 1, 2, 3]);
  });

  it("asks once more, in another order, after a verdict that cannot be read; then the group is not judged", async () => {
    const group = [1, 2, 3, 4].map((n, i) => attempt(`answer ${n}`, i));
    const late = script((text, index) => (index === 0 ? "hm" : rankByNumber(text)));
    expect((await late.judge.scoreGroup(group, never)).map(({ score }) => score)).toEqual([0, 1 / 3, 2 / 3, 1]);
    const [first, second] = late.prompts.map((text) =>
      readAttempts(text)
        .map(({ body }) => body)
        .join(),
    );
    expect(second).not.toBe(first);
    const mute = script(() => "hm");
    await expect(mute.judge.scoreGroup(group, never)).rejects.toMatchObject({
      code: "reward/bad-verdict",
      verdict: "hm",
    });
    expect(mute.prompts).toHaveLength(2);
  });

  it("cuts long messages in their middle until the group fits, and refuses one that never does", async () => {
    const group = [1, 2].map((n, i) => attempt(`answer ${n} ${"x".repeat(9000)} end ${n}`, i));
    const { judge, prompts } = script(rankByNumber, { maxGroupTokens: 6000 });
    expect((await judge.scoreGroup(group, never)).map(({ score }) => score)).toEqual([0, 1]);
    expect(prompts[0]!.length).toBeLessThanOrEqual(6000);
    expect(prompts[0]).toMatch(/answer 1 x+\n\[\d+ characters left out\]\nx+ end 1/);
    await expect(script(rankByNumber, { maxGroupTokens: 300 }).judge.scoreGroup(group, never)).rejects.toMatchObject({
      code: "reward/too-long",
      subject: "group of 2",
      summary: expect.stringContaining("300"),
    });
  });

  it("stands beside other models and rules, prompt by prompt; a group that it cannot judge leaves the others", async () => {
    const { judge } = script((text) => (text.includes("answer 8") ? "?" : rankByNumber(text)));
    const entry = { name: "ranked", weight: 2, model: judge, concurrency: 2, timeoutS: null };
    const constant = {
      name: "one",
      weight: 1,
      model: { score: async () => ({ score: 1 }) },
      concurrency: 1,
      timeoutS: 5,
    };
    const rewards = new JudgedRewards({
      rules: makeRewardManager("naive", { reward: () => 10 }),
      ruleWeight: 1,
      models: new RewardModels([entry, constant]),
    });
    expect(rewards.granularity).toBe("batch");
    // Groups need not lie side by side.
    const asked = [attempt("answer 1", 0, "a"), attempt("answer 8", 1, "b"), attempt("answer 2", 2, "a")];
    const [low, broken, high] = await rewards.judge(asked);
    expect(low).toMatchObject({ score: 11, extra: { ranked_score: 0, one_score: 1, rule_score: 10 } });
    expect(high).toMatchObject({ score: 13, extra: { ranked_score: 1 } });
    expect(broken).toMatchObject({ error: expect.stringMatching(/reward model ranked: .*no JSON: \?/) });
    await rewards.dispose();
  });

  it.each([
    ranks,
    scores,
    { output: "scores", minScore: -1, maxScore: 1 },
    { output: "scores", minScore: 0, maxScore: 1 },
  ] as const)("by a random model writes a text of the grammar: %j", async (format) => {
    const engine = await models.load({ seed: 3 }, { contextSize: 4096, maxSequences: 2 });
    const tokenizer = DeltaTokenizer.forModel(engine);
    const writer = writeGroupsWithEngine(engine, tokenizer, { maxTokens: 256, temperature: 1 });
    const prompt = new GroupPrompt(null, { ...format, rubric: "None." }, "test");
    const judge = new GroupJudge(writer, prompt, { ...format, maxGroupTokens: 3000 });
    for (const size of [1, 4]) {
      const group = Array.from({ length: size }, (_, i) => attempt(`answer ${i}`, i));
      const judged = await judge.scoreGroup(group, never);
      expect(judged).toHaveLength(size);
      for (const { score } of judged) expect(score >= 0 && score <= 1).toBe(true);
    }
  });

  it("by an engine has a grammar, and another draw the second time", async () => {
    const given: { grammar?: string; seed?: number }[] = [];
    const engine = new FakeEngine({ reply: () => "no", contextSize: 8192 });
    const create = engine.createSequence.bind(engine);
    engine.createSequence = () => {
      const sequence = create();
      const generate = sequence.generate.bind(sequence);
      sequence.generate = (delta, options) => {
        given.push({ grammar: options.grammar, seed: options.seed });
        return generate(delta, { ...options, grammar: undefined });
      };
      return sequence;
    };
    const writer = writeGroupsWithEngine(engine, DeltaTokenizer.forModel(engine), { maxTokens: 9, temperature: 0 });
    const judge = new GroupJudge(writer, new GroupPrompt(null, { ...ranks, rubric: "-" }, "t"), {
      ...ranks,
      maxGroupTokens: 8000,
    });
    await expect(judge.scoreGroup([attempt("answer 1")], never)).rejects.toMatchObject({
      code: "reward/bad-verdict",
    });
    expect(given).toEqual([0, 1].map((seed) => ({ grammar: makeGroupGrammar(1, ranks), seed })));
    expect(engine.counts.disposed).toBe(engine.counts.created);
  });
});

it("ranks of validations with one sample a prompt, which are all the best, are warned of", () => {
  const find = (model: object, data: object = {}, val_kwargs: object = {}) => {
    const config = trainConfigSchema.parse({
      data: { train_files: "rows.jsonl", val_files: "held-out.jsonl", ...data },
      actor_rollout_ref: { model: { path: "m.gguf", lora_rank: 8 }, rollout: { val_kwargs } },
      reward_model: { enable: true, model: [{ path: "judge.gguf" }, { name: "best", path: "judge.gguf", ...model }] },
    });
    return listWarnings(config).map(({ key }) => key);
  };
  const group = { type: "group_rank" };
  expect(find(group)).toEqual(["reward_model.model[1].group_output"]);
  expect(find({ ...group, group_output: "scores" })).toEqual([]);
  expect(find(group, { val_files: null })).toEqual([]);
  expect(find(group, {}, { n: 2, do_sample: true })).toEqual([]);
  expect(find({})).toEqual([]);
});

describe("a training step with a judge of groups", () => {
  const open = (model: Record<string, unknown>) =>
    openTinyTraining(models, {
      rewardModel: { enable: true, rule_weight: 0, model: { type: "group_rank", ...model } },
    });

  it("has the groups' scores, from a server that sees one prompt a group; a conversation without a rank has failed", async () => {
    const server = await startChatServer(({ messages }) => {
      const ids = readAttempts(messages[0]!.content).map(({ id }) => id);
      return messages[0]!.content.includes("[user]\nbb\n")
        ? "never"
        : JSON.stringify(ids.map((id) => ({ id, rank: id })));
    });
    servers.push(server);
    const training = await open({ base_url: server.url, rubric: "Be brief." });
    const { trajectories, metrics } = await runTrainingStep(training, { rows: training.trainRows, step: 1, epoch: 0 });
    // Three prompts, and the one that was refused once more.
    expect(server.requests).toHaveLength(4);
    expect(server.requests[0]!.body.messages[0]!.content).toContain("Be brief.");
    const of = (prompt: string) =>
      trajectories.filter(({ messages }) => messages[0]!.content === prompt).map(({ rewards }) => rewards.score);
    expect(of("a").sort()).toEqual([0, 1 / 3, 2 / 3, 1]);
    expect(of("bb")).toEqual([null, null, null, null]);
    expect(metrics).toMatchObject({ "rollout/judge_failed": 4, "rollout/kept": 8, "reward_extra/rm_score/mean": 0.5 });
    await training.judgedRewards!.dispose();
  });

  it("takes a GGUF, and refuses refills and broken templates", async () => {
    const path = await models.write({ seed: 9 });
    const training = await open({ path, group_output: "scores", max_group_tokens: 3000, temperature: 1 });
    const { trajectories } = await runTrainingStep(training, { rows: training.trainRows, step: 1, epoch: 0 });
    for (const { rewards, extraFields } of trajectories) {
      expect(rewards.score! >= 0 && rewards.score! <= 1).toBe(true);
      expect(extraFields.rm_verdict).toMatch(/^as \d of 4: \[\{"id": 1, "score": \d+\}/);
    }
    await training.judgedRewards!.dispose();
    const refill = {
      rewardModel: { enable: true, model: { type: "group_rank", path } },
      rollout: { on_failure: "refill" },
    };
    await expect(openTinyTraining(models, refill)).rejects.toMatchObject({
      code: "config/bad-value",
      subject: "actor_rollout_ref.rollout.on_failure",
      received: "refill",
    });
    await expect(open({ path, prompt_template_path: "nowhere.jinja" })).rejects.toMatchObject({
      code: "config/bad-template",
    });
  });
});
