import { FakeEngine, type FakeReply } from "@cria/core/testing";
import { makeRewardManager, type RewardRequest } from "@cria/rollout";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { afterAll, afterEach, describe, expect, it, vi } from "vitest";
import { rewardModelsSchema } from "../config/sections/reward-models-config.js";
import { type ChatReply, type ChatRequest, type ChatServer, startChatServer } from "../testing/chat-server.js";
import { ChatEndpoint } from "./chat-endpoint.js";
import { GenerativeJudge, writeWithEndpoint, writeWithEngine } from "./generative-judge.js";
import { GroupPrompt } from "./group-prompt.js";
import { defaultTemplates, JudgePrompt } from "./judge-prompt.js";
import { JudgedRewards } from "./judged-rewards.js";
import { parseScore } from "./parse-score.js";
import { JudgementError, type RewardModel } from "./reward-model.js";
import { type CombinedScore, RewardModels, type WeightedRewardModel } from "./reward-models.js";
import { weighWithEndpoint, weighWithEngine, YesNoScorer } from "./yes-no-scorer.js";

const constants = { min_score: 0, max_score: 10, yes: "Yes", no: "No" };
const [entry] = rewardModelsSchema.parse({ path: "judge.gguf" });
const format = { pattern: new RegExp(entry!.score_pattern, "i"), min: 0, max: 10 };
const prompt = new JudgePrompt(defaultTemplates.judge, constants, "test");
const question = new JudgePrompt(defaultTemplates.yes_no, constants, "test");
const never = new AbortController().signal;

const makeRequest = (answer = "42", order = 0): RewardRequest => ({
  dataSource: "test",
  solutionText: answer,
  groundTruth: "42",
  extraInfo: {
    index: order,
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: "6 * 7?" },
      { role: "assistant", content: answer },
    ],
    numTurns: 2,
    finishReason: "stop",
    toolRewards: [],
    turnScores: [],
    interactionScore: null,
    toolScore: null,
  },
  responseLength: 3,
  order,
  uid: `test/${order}`,
  place: `row ${order}`,
});

const servers: ChatServer[] = [];
afterEach(() => Promise.all(servers.splice(0).map((server) => server.close())));
const serve = async (reply: (request: ChatRequest, index: number) => ChatReply | Promise<ChatReply>) => {
  const server = await startChatServer(reply);
  servers.push(server);
  return server;
};
const connect = (baseUrl: string, retries = 0) =>
  new ChatEndpoint({ baseUrl, model: "judge", apiKey: "secret", retries, retryDelayS: 0.001 });
const verdictOptions = { maxTokens: 64, temperature: 0 };
const judgeBy = (url: string, retries = 0) =>
  new GenerativeJudge(writeWithEndpoint(connect(url, retries), verdictOptions), prompt, format);

const engines: FakeEngine[] = [];
afterAll(() => Promise.all(engines.map((engine) => engine.dispose())));
const makeFake = (reply: (text: string) => FakeReply, contextSize = 4096) => {
  const engine = new FakeEngine({ reply: ({ text }) => reply(text), contextSize });
  engines.push(engine);
  return { engine, tokenizer: DeltaTokenizer.forModel(engine) };
};
const wrap = (
  model: WeightedRewardModel["model"],
  options: Partial<WeightedRewardModel> = {},
): WeightedRewardModel => ({
  name: "rm",
  weight: 1,
  model,
  concurrency: 8,
  timeoutS: null,
  ...options,
});
const constant = (score: number): RewardModel => ({ score: async () => ({ score }) });

describe("the score in a verdict", () => {
  it.each([
    ["Good work. Score: 7", 0.7],
    ["Score: 2? No, rather\n**Score:** 9.5", 0.95],
    ["score = 0", 0],
    ['{"score": 10}', 1],
    ["I give it a score 8/10", 0.8],
  ])("%j is %d", (verdict, score) => expect(parseScore(verdict, format)).toBeCloseTo(score, 12));

  it.each(["no idea", "Score: 11", "Score: -1", ""])("%j is none", (verdict) =>
    expect(() => parseScore(verdict, format)).toThrow(JudgementError),
  );

  it("goes from 0 at min_score to 1 at max_score", () => {
    const range = { ...format, min: -5, max: 5 };
    expect(["-5", "0", "5"].map((given) => parseScore(`Score: ${given}`, range))).toEqual([0, 0.5, 1]);
  });
});

describe("a judge's prompt", () => {
  it("shows conversation, tool calls and reference", () => {
    const request = makeRequest();
    const call = { type: "function" as const, function: { name: "calculator", arguments: { expression: "6*7" } } };
    request.extraInfo.messages = [
      { role: "user", content: "6 * 7?" },
      { role: "assistant", content: "", tool_calls: [call] },
      { role: "tool", content: "42" },
      { role: "assistant", content: "It is 42." },
    ];
    const [{ role, content }] = prompt.render(request) as [{ role: string; content: string }];
    expect(role).toBe("user");
    for (const part of ["[user]\n6 * 7?", "calculator", "6*7", "[tool]\n42", "It is 42.", "<reference>\n42\n"])
      expect(content).toContain(part);
    expect(content).toContain("from 0 (useless) to 10 (perfect)");
    expect(prompt.render({ ...request, groundTruth: null })[0]!.content).not.toContain("reference");
  });

  it("names images, which a judge of texts cannot see", () => {
    const image = {
      hash: "3f2a9c01".repeat(8),
      width: 64,
      height: 48,
      mimeType: "image/png",
      bytes: new Uint8Array(9),
    } as const;
    const request = makeRequest();
    request.extraInfo.messages[1] = {
      role: "user",
      content: [
        { type: "image", image },
        { type: "text", text: " what?" },
      ],
    };
    request.extraInfo.images = [image];
    const own = new JudgePrompt(
      "{{ question }}|{{ messages[1].content }}|{{ extra_info | tojson }}",
      constants,
      "test",
    );
    const [rendered] = own.render(request);
    const named = "[image 64 x 48, 3f2a9c01] what?";
    expect(String(rendered!.content).split("|").slice(0, 2)).toEqual([named, named]);
    expect(rendered!.content).not.toContain("bytes");
    const group = new GroupPrompt(null, { output: "ranks", rubric: "", minScore: 0, maxScore: 1 }, "test");
    expect(group.render([request, request], () => true)![0]!.content).toContain(named);
  });

  it("is configurable", () => {
    const source = "{{ question }}|{{ answer }}|{{ ground_truth }}|{{ data_source }}|{{ extra_info.index }}";
    const [message] = new JudgePrompt(source, {}, "test").render({ ...makeRequest("x"), groundTruth: { a: [1] } });
    expect(message!.content).toBe('6 * 7?|x|{"a":[1]}|test|0');
    expect(() => new JudgePrompt("{% if %}", {}, "mine.jinja")).toThrow(
      expect.objectContaining({ code: "config/bad-template", subject: "mine.jinja" }),
    );
  });
});

describe("a generative judge", () => {
  it("by a model in this process reads its score from the model's text", async () => {
    const { engine, tokenizer } = makeFake((text) => (text.includes("[assistant]\n42") ? "Score: 9" : "Score: 1"));
    const judge = new GenerativeJudge(writeWithEngine(engine, tokenizer, verdictOptions), prompt, format);
    expect(await judge.score(makeRequest("42"), never)).toEqual({ score: 0.9, verdict: "Score: 9" });
    expect((await judge.score(makeRequest("41"), never)).score).toBeCloseTo(0.1, 12);
    expect(engine.counts.created).toBe(2);
    expect(engine.counts.disposed).toBe(2);
  });

  it("refuses a prompt that does not fit", async () => {
    const { engine, tokenizer } = makeFake(() => "Score: 9", 64);
    const judge = new GenerativeJudge(writeWithEngine(engine, tokenizer, verdictOptions), prompt, format);
    await expect(judge.score(makeRequest(), never)).rejects.toMatchObject({
      code: "reward/too-long",
      summary: expect.stringMatching(/\d+ tokens.* 63$/),
    });
  });

  it("by a server asks as OpenAI documents it", async () => {
    const server = await serve(() => "Score: 5");
    expect((await judgeBy(server.url).score(makeRequest(), never)).score).toBe(0.5);
    const [{ body, headers, path }] = server.requests as [ChatServer["requests"][number]];
    expect(path).toBe("/v1/chat/completions");
    expect(headers.authorization).toBe("Bearer secret");
    expect(body).toMatchObject({ model: "judge", max_tokens: 64, temperature: 0 });
    expect(body.messages).toEqual(prompt.render(makeRequest()));
  });

  it("tries a busy server again", async () => {
    const server = await serve((_, i) => (i < 2 ? { status: i === 0 ? 503 : 429, body: "busy" } : "Score: 5"));
    expect((await judgeBy(server.url, 2).score(makeRequest(), never)).score).toBe(0.5);
    expect(server.requests).toHaveLength(3);
  });

  it("names a server's problem", async () => {
    const judge = async (reply: ChatReply, retries = 0) =>
      judgeBy((await serve(() => reply)).url, retries)
        .score(makeRequest(), never)
        .catch((error: unknown) => error);
    const subject = expect.stringMatching(/^http:/);
    expect(await judge({ status: 401, body: "bad key" })).toMatchObject({
      code: "config/endpoint-refused",
      subject,
      received: "HTTP 401: bad key",
      remedy: expect.stringContaining("api_key_env"),
    });
    expect(await judge({ status: 404, body: "no such model" })).toMatchObject({ code: "config/endpoint-refused" });
    const failed = (code: string, said: string | RegExp) => ({ code, subject, summary: expect.stringMatching(said) });
    expect(await judge({ status: 400, body: "too long" })).toMatchObject(
      failed("reward/http-error", "HTTP 400: too long"),
    );
    expect(await judge({ status: 500, body: "x" }, 1)).toMatchObject(
      failed("reward/http-error", /HTTP 500 \(2 attempts\): x/),
    );
    expect(await judge({ body: { choices: [] } })).toMatchObject(
      failed("reward/bad-answer", /choices\[0\]\.message\.content.*\{"choices":\[\]\}/),
    );
    expect(await judge({ body: "<html>" })).toMatchObject(failed("reward/bad-answer", "JSON"));
    const gone = await startChatServer(() => "");
    await gone.close();
    await expect(judgeBy(gone.url, 1).score(makeRequest(), never)).rejects.toMatchObject(
      failed("reward/unreachable", /\(2 attempts\): .*ECONNREFUSED/),
    );
  });
});

describe("a yes-no scorer", () => {
  it("by a model in this process is the share of yes in the two answers' probability", async () => {
    const { engine, tokenizer } = makeFake(() => "");
    const answers = { yes: "Yes", no: "No" };
    const scorer = new YesNoScorer(weighWithEngine(engine, tokenizer, answers, 4096), question);
    const { score } = await scorer.score(makeRequest(), never);
    const promptIds = tokenizer.encodePrompt(question.render(makeRequest()));
    const [p, q] = ["Yes", "No"].map((answer) => {
      const ids = Int32Array.from([...promptIds, ...engine.tokenize(answer)]);
      let sum = 0;
      for (let t = promptIds.length; t < ids.length; t++) sum += engine.logprobAt(ids, t);
      return Math.exp(sum);
    });
    expect(score).toBeCloseTo(p! / (p! + q!), 6);
    const short = new YesNoScorer(weighWithEngine(engine, tokenizer, answers, 16), question);
    await expect(short.score(makeRequest(), never)).rejects.toMatchObject({
      code: "reward/too-long",
      summary: expect.stringMatching(/ 13$/),
    });
  });

  it("by a server adds up the spellings of each answer", async () => {
    const top = [
      { token: "Yes", logprob: Math.log(0.4) },
      { token: " yes", logprob: Math.log(0.2) },
      { token: "No", logprob: Math.log(0.2) },
      { token: "Maybe", logprob: Math.log(0.1) },
    ];
    const choice = (top_logprobs: unknown) => ({
      body: { choices: [{ message: { content: "Yes" }, logprobs: { content: [{ top_logprobs }] } }] },
    });
    const replies = [choice(top), choice(top.slice(0, 2)), choice(top.slice(3)), "Yes"];
    const server = await serve((_, i) => replies[i]!);
    const scorer = new YesNoScorer(weighWithEndpoint(connect(server.url), { yes: "Yes", no: "No" }), question);
    expect((await scorer.score(makeRequest(), never)).score).toBeCloseTo(0.75, 9);
    expect(server.requests[0]!.body).toMatchObject({ max_tokens: 1, logprobs: true, top_logprobs: 20 });
    expect((await scorer.score(makeRequest(), never)).score).toBe(1);
    await expect(scorer.score(makeRequest(), never)).rejects.toMatchObject({
      code: "reward/bad-verdict",
      summary: expect.stringMatching(/Yes.*No/),
    });
    await expect(scorer.score(makeRequest(), never)).rejects.toMatchObject({
      code: "reward/bad-answer",
      summary: expect.stringContaining("top_logprobs"),
    });
  });
});

describe("models together", () => {
  it("and rules add up by their weights", async () => {
    const models = new RewardModels([
      wrap(constant(0.5), { name: "a", weight: 2 }),
      wrap(constant(-1), { name: "b", weight: 0.25 }),
    ]);
    const rules = makeRewardManager("naive", { reward: () => ({ score: 3, acc: true }) });
    const [judgement] = await new JudgedRewards({ rules, ruleWeight: 10, models }).judge([makeRequest()]);
    expect(judgement).toEqual({
      score: 30 + 1 - 0.25,
      extra: { acc: true, rule_score: 3, a_score: 0.5, b_score: -1 },
      parts: [
        { name: "rule", value: 3, weight: 10, by: "the reward function" },
        { name: "a", value: 0.5, weight: 2, by: "reward model a" },
        { name: "b", value: -1, weight: 0.25, by: "reward model b" },
      ],
    });
    const alone = new JudgedRewards({ rules: makeRewardManager("naive", {}), ruleWeight: 0, models });
    expect(await alone.judge([makeRequest()])).toMatchObject([
      { score: 0.75, extra: { a_score: 0.5, b_score: -1 }, parts: [{ name: "a" }, { name: "b" }] },
    ]);
    await models.dispose();
  });

  it("have no score where one fails: it is named, with its reason and its verdict", async () => {
    const server = await serve(() => "I would rather not say.");
    const models = new RewardModels([wrap(judgeBy(server.url)), wrap(constant(1), { name: "other" })]);
    const rules = makeRewardManager("naive", { reward: () => 3 });
    const [judgement] = await new JudgedRewards({ rules, ruleWeight: 1, models }).judge([makeRequest("x", 3)]);
    expect(judgement).toEqual({
      error: expect.stringMatching(/^reward model rm: verdict "/),
      extra: {
        rm_error: expect.stringMatching(/^verdict "/),
        rm_verdict: "I would rather not say.",
        other_score: 1,
      },
    });
    // Nor where the rules fail.
    const broken = makeRewardManager("naive", { reward: () => Number.NaN });
    const [without] = await new JudgedRewards({ rules: broken, ruleWeight: 1, models }).judge([makeRequest("x", 3)]);
    expect(without).toMatchObject({ error: expect.stringMatching(/received NaN; reward model rm: verdict "/) });
    await models.dispose();
  });

  it("have no score where a template does not take a conversation", async () => {
    const source = "{% if answer == 'bad' %}{{ raise_exception('not this one') }}{% endif %}{{ answer }}";
    const { engine, tokenizer } = makeFake(() => "Score: 9");
    const picky = new JudgePrompt(source, {}, "test");
    const models = new RewardModels([
      wrap(new GenerativeJudge(writeWithEngine(engine, tokenizer, verdictOptions), picky, format)),
    ]);
    const [{ error, extra }] = (await models.judge([makeRequest("bad")])) as [CombinedScore];
    expect(error).toMatch(/^reward model rm: .*not this one/s);
    expect(extra).toEqual({ rm_error: expect.stringContaining("not this one") });
    expect((await models.judge([makeRequest("good")]))[0]!.score).toBe(0.9);
    await models.dispose();
  });

  it("have no score where one takes too long, and the request ends; the wait for a turn does not count", async () => {
    const slow = await serve(() => new Promise<string>(() => undefined));
    const late = new RewardModels([wrap(judgeBy(slow.url), { timeoutS: 0.1 })]);
    const [{ error, extra }] = (await late.judge([makeRequest()])) as [CombinedScore];
    expect(error).toMatch(/^reward model rm: score: .* 0\.1 s$/);
    expect(extra).toEqual({ rm_error: error!.slice("reward model rm: ".length) });
    await late.dispose();
    // A clock for each request, which starts when the request has its turn.
    const clock = vi.spyOn(AbortSignal, "timeout");
    const clocks: number[] = [];
    const score = async () => {
      clocks.push(clock.mock.calls.length);
      await new Promise((resolve) => setImmediate(resolve));
      return { score: 1 };
    };
    const busy = new RewardModels([wrap({ score }, { concurrency: 1, timeoutS: 2 })]);
    const all = await busy.judge(Array.from({ length: 5 }, (_, i) => makeRequest("42", i)));
    expect(all.map((one) => one.score)).toEqual([1, 1, 1, 1, 1]);
    expect(clocks).toEqual([1, 2, 3, 4, 5]);
    expect(clock.mock.calls).toEqual(clocks.map(() => [2000]));
    clock.mockRestore();
    await busy.dispose();
  });

  it("end the run where a server refuses every request, an engine fails, or the run is aborted", async () => {
    const server = await serve(() => ({ status: 403, body: "forbidden" }));
    const models = new RewardModels([wrap(judgeBy(server.url))]);
    await expect(models.judge([makeRequest()])).rejects.toMatchObject({ code: "config/endpoint-refused" });
    const { engine, tokenizer } = makeFake(() => "Score: 9");
    await engine.dispose();
    const dead = new GenerativeJudge(writeWithEngine(engine, tokenizer, verdictOptions), prompt, format);
    await expect(new RewardModels([wrap(dead)]).judge([makeRequest()])).rejects.toMatchObject({
      code: "engine/disposed",
    });
    const run = new AbortController();
    const hanging = await serve(() => {
      run.abort(new Error("stopped"));
      return new Promise<string>(() => undefined);
    });
    const waiting = new RewardModels([wrap(judgeBy(hanging.url))]);
    await expect(waiting.judge([makeRequest()], run.signal)).rejects.toThrow("stopped");
  });

  it("are freed after their running calls have ended", async () => {
    const hanging = await serve(() => new Promise<string>(() => undefined));
    const order: string[] = [];
    const judge = judgeBy(hanging.url);
    const model: RewardModel = {
      score: (request, signal) => judge.score(request, signal).finally(() => order.push("ended")),
      dispose: async () => void order.push("freed"),
    };
    const models = new RewardModels([wrap(model)]);
    const judged = models.judge([makeRequest()]).catch((error: Error) => error.message);
    await vi.waitFor(() => expect(hanging.requests).toHaveLength(1));
    await models.dispose();
    expect(order).toEqual(["ended", "freed"]);
    expect(await judged).toBe("the training has ended");
  });
});
