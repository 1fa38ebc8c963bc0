import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ChatMessage, DataError, type ToolSchema } from "@cria/core";
import { FakeEngine } from "@cria/core/testing";
import { type DatasetRow, loadDataset } from "@cria/rollout";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { interaction, type ToolSource, tool } from "@cria/tools";
import { afterAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { Policy } from "../policy/policy.js";
import { rollOut } from "../step/roll-out.js";
import { defineTask, type Task } from "./task.js";
import type { Episode, TaskDefinition } from "./task-definition.js";

const folder = mkdtempSync(join(tmpdir(), "cria-task-"));
afterAll(() => rmSync(folder, { recursive: true }));

function writeRows(name: string, rows: readonly object[]): string {
  const file = join(folder, name);
  writeFileSync(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  return file;
}

const record = (content: string, more: object = {}) => ({
  data_source: "sums",
  prompt: [{ role: "user", content }],
  reward_model: { ground_truth: content.length },
  ...more,
});

/** A scripted policy. */
function openPolicy(reply: ConstructorParameters<typeof FakeEngine>[0]["reply"] = () => "it is #### 4"): Policy {
  const engine = new FakeEngine({ reply, contextSize: 8192 });
  return new Policy({ engine, tokenizer: DeltaTokenizer.forModel(engine), reference: null, seed: 0 });
}

const reward = () => 1;
const promptsOf = async (task: Task<object>) =>
  (await task.load()).map(({ prompt }) => prompt.map(({ role, content }) => `${role}: ${content}`));
const failureOf = (work: () => unknown): Promise<unknown> =>
  (async () => work())().then(
    () => null,
    (error: unknown) => error,
  );

/** Accepts definitions that a user without types may write. */
const defineAnything = (definition: unknown) => defineTask(definition as TaskDefinition<object>);

describe("a definition that is wrong names the field", () => {
  const rows = [{ question: "2+2" }];
  const named = (name: string) =>
    tool({ name, description: "Does nothing.", inputSchema: z.object({}), execute: () => "" });

  it.each<[title: string, definition: unknown, field: string, details?: object]>([
    ["nothing", undefined, "", { received: "nothing" }],
    ["no rows at all", { reward }, ": rows"],
    ["an empty list", { rows: [] }, ": rows", { received: "[]" }],
    ["an empty path", { rows: "" }, ": rows"],
    ["rows that are no objects", { rows: [1, 2] }, ": rows", { received: "[1,2]" }],
    ["files among rows", { rows: ["a.jsonl", { question: "2+2" }] }, ": rows"],
    [
      "a field that there is not",
      { rows, rewards: reward },
      ": rewards",
      { code: "config/unknown-key", expected: expect.stringContaining('"reward"') },
    ],
    ["a prompt that is no function", { rows, prompt: "2+2" }, ": prompt", { received: '"2+2"' }],
    ["a truth that is no function", { rows, truth: 4 }, ": truth", { received: "4" }],
    ["a reward that is no function", { rows, reward: 1 }, ": reward", { received: "1" }],
    ["a system message that is none", { rows, system: ["x"] }, ": system", { received: '["x"]' }],
    ["tools that are no list", { rows, tools: {} }, ": tools", { received: "{}" }],
    [
      "an interaction that is none",
      { rows, interaction: {} },
      ": interaction",
      { expected: expect.stringContaining("interaction(...)") },
    ],
    [
      "two tools of one name",
      { rows, tools: [named("a"), named("b"), named("a")] },
      ": tools",
      { code: "config/duplicate-tool", received: "tools[0] and tools[2]" },
    ],
    [
      "an unknown format of calls",
      { rows, toolFormat: "herms" },
      ": toolFormat",
      { code: "config/unknown-name", expected: expect.stringContaining("hermes"), received: "herms" },
    ],
    ["no turns", { rows, maxTurns: 0 }, ": maxTurns", { received: "0" }],
    ["half a token", { rows, maxPromptLength: 1.5 }, ": maxPromptLength", { received: "1.5" }],
    ["endless tokens", { rows, maxResponseLength: Number.NaN }, ": maxResponseLength", { received: "NaN" }],
  ])("%s", (_, definition, field, details) => {
    expect(() => defineAnything(definition)).toThrow(
      expect.objectContaining({ code: "config/bad-value", subject: `defineTask${field}`, ...details }),
    );
  });

  it.each<[title: string, definition: unknown, details: object]>([
    [
      "a row without a prompt",
      { rows: [...rows, { ask: "3+3" }] },
      { subject: "rows[1]", received: expect.stringContaining("ask") },
    ],
    ["a prompt that is a number", { rows: [{ prompt: 4 }] }, { subject: "rows[0]", received: "4" }],
    [
      "messages that are wrong",
      { rows: [{ messages: [{ role: "me" }] }] },
      { subject: 'rows[0], column "prompt.0.role"' },
    ],
    [
      "a prompt function that throws",
      {
        rows,
        prompt: () => {
          throw new Error("no such template");
        },
      },
      { subject: "defineTask: prompt of rows[0]", received: "no such template" },
    ],
    [
      "one that returns rubbish",
      { rows, prompt: () => 5 },
      { subject: "defineTask: prompt of rows[0]", received: "5" },
    ],
    ["one that is asynchronous", { rows, prompt: async () => "x" }, { received: "a promise" }],
    [
      "a truth function that throws",
      {
        rows,
        truth: () => {
          throw new Error("who knows");
        },
      },
      { subject: "defineTask: truth of rows[0]", received: "who knows" },
    ],
    [
      "a file that is not there",
      { rows: "nowhere.jsonl" },
      { code: "data/unreadable", subject: expect.stringContaining("nowhere.jsonl") },
    ],
  ])("%s, when the rows are read", async (_, definition, details) => {
    const error = await failureOf(() => defineAnything(definition).load());
    expect(error).toMatchObject({ code: "data/bad-row", ...details });
  });

  it("a file that was not there may be there the next time", async () => {
    const task = defineTask({ rows: join(folder, "late.jsonl") });
    expect(await failureOf(() => task.load())).toBeInstanceOf(DataError);
    writeRows("late.jsonl", [record("now")]);
    expect(await promptsOf(task)).toEqual([["user: now"]]);
  });
});

describe("rows", () => {
  it("have a prompt by a function, or as prompt, messages or question", async () => {
    const messages: ChatMessage[] = [
      { role: "system", content: "own" },
      { role: "user", content: "c" },
    ];
    const task = defineTask({ rows: [{ question: "a" }, { prompt: "b" }, { messages }], system: "be brief" });
    expect(await promptsOf(task)).toEqual([
      ["system: be brief", "user: a"],
      ["system: be brief", "user: b"],
      ["system: own", "user: c"],
    ]);
    const made = defineTask({
      rows: [{ n: 2 }],
      prompt: ({ n }) => `${n}+${n}`,
      truth: ({ n }) => 2 * n,
      name: "sums",
    });
    expect(await made.load()).toMatchObject([
      { uid: "sums/0:0", dataSource: "sums", place: "rows[0]", groundTruth: 4, prompt: [{ content: "2+2" }] },
    ]);
  });

  it("of files and of loadDataset are the same, with the task's own functions", async () => {
    const files = [writeRows("a.jsonl", [record("a"), record("bb")]), writeRows("b.jsonl", [record("ccc")])];
    const ofFiles = await defineTask({ rows: files }).load();
    expect(await defineTask({ rows: await loadDataset(files) }).load()).toEqual(ofFiles);
    expect(ofFiles.map(({ uid }) => uid)).toEqual(["sums/0:0", "sums/0:1", "sums/1:0"]);
    expect(ofFiles.map(({ extraInfo, ...row }) => ({ ...row, extraInfo: { ...extraInfo, row: undefined } }))).toEqual(
      (await loadDataset(files)).map((row) => expect.objectContaining({ ...row, extraInfo: expect.anything() })),
    );
    const told = defineTask({ rows: files[0]!, system: "be brief", truth: ({ groundTruth }) => `${groundTruth}!` });
    expect(await promptsOf(told)).toEqual([
      ["system: be brief", "user: a"],
      ["system: be brief", "user: bb"],
    ]);
    expect((await told.load()).map(({ groundTruth }) => groundTruth)).toEqual(["1!", "2!"]);
  });

  it("of two datasets are distinguished", async () => {
    const load = (name: string) => loadDataset([writeRows(name, [record(name)])]);
    const task = defineTask({ rows: [...(await load("x.jsonl")), ...(await load("y.jsonl"))], reward });
    const rows = await task.load();
    expect(rows.map(({ uid }) => uid)).toEqual(["sums/0:0", "sums/0:0#2"]);
    const groups = await rollOut(openPolicy(), task, rows, { n: 2 });
    expect([...groups].map((group) => group.map(({ messages }) => messages[0]!.content))).toEqual([
      ["x.jsonl", "x.jsonl"],
      ["y.jsonl", "y.jsonl"],
    ]);
  });

  it("that are held out have uids of their own dataset, and are not rolled out among others", async () => {
    const task = defineTask({ rows: [{ question: "a" }], reward });
    const held = task.withRows([{ question: "b" }], "validation.rows");
    expect(await held.load()).toMatchObject([{ uid: "task/0:0", place: "validation.rows[0]" }]);
    const mixed = [...(await task.load()), ...(await held.load())];
    const error = await failureOf(() => rollOut(openPolicy(), task, mixed));
    expect(error).toMatchObject({
      code: "data/bad-rows",
      subject: "rollOut: rows",
      received: 'rows[0] and rows[1], both "task/0:0"',
    });
  });
});

describe("batches", () => {
  const task = defineTask({ rows: Array.from({ length: 7 }, (_, i) => ({ question: String(i) })) });
  const draw = async (size: number, options?: Parameters<typeof task.batches>[1]) => {
    const drawn: string[] = [];
    for await (const rows of task.batches(size, options))
      drawn.push(rows.map(({ prompt }) => prompt[0]!.content).join(""));
    return drawn;
  };

  it("are in order, or in one that the seed decides, pass after pass", async () => {
    expect(await draw(3, { shuffle: false })).toEqual(["012", "345"]);
    expect(await draw(3, { shuffle: false, epochs: 2 })).toEqual(["012", "345", "012", "345"]);
    expect(await draw(3, { shuffle: false, steps: 3 })).toEqual(["012", "345", "012"]);
    const shuffled = await draw(3, { epochs: 2 });
    expect(shuffled).toEqual(await draw(3, { epochs: 2, seed: 0 }));
    expect(shuffled).not.toEqual(await draw(3, { epochs: 2, seed: 1 }));
    expect(shuffled.slice(2)).not.toEqual(shuffled.slice(0, 2));
    expect(await draw(3, { steps: 0 })).toEqual([]);
  });

  it("have all rows where the size is larger than they are", async () => {
    expect(await draw(100, { shuffle: false, epochs: 2 })).toEqual(["0123456", "0123456"]);
    expect((await draw(100))[0]!.split("").sort().join("")).toBe("0123456");
  });

  it.each([
    ["size", [0, {}]],
    ["size", [Number.NaN, {}]],
    ["epochs", [2, { epochs: 0.5 }]],
    ["steps", [2, { steps: -1 }]],
  ] as const)("refuse a wrong %s", async (name, [size, options]) => {
    expect(await failureOf(() => draw(size, options))).toMatchObject({
      code: "config/bad-value",
      subject: `task.batches: ${name}`,
    });
  });
});

describe("an episode", () => {
  it("has the answer, all text, and the row, also of a file", async () => {
    const seen: Episode<object>[] = [];
    const look = (episode: Episode<object>) => {
      seen.push(episode);
      return { score: 0.5, extra: 2 };
    };
    const own = defineTask({ rows: [{ question: "2+2", truth: "4" }], reward: look });
    const groups = await rollOut(openPolicy(), own, await own.load(), { n: 1 });
    expect(seen).toMatchObject([
      {
        answer: "4",
        text: "it is #### 4",
        row: { question: "2+2", truth: "4" },
        turns: 2,
        finishReason: "stop",
        toolScore: null,
        interactionScore: null,
        messages: [{ role: "user" }, { role: "assistant" }],
      },
    ]);
    expect(groups.trajectories[0]).toMatchObject({ reward: 0.5, extraFields: { extra: 2 } });
    const files = defineTask({ rows: writeRows("e.jsonl", [record("a")]), reward: look });
    await rollOut(openPolicy(), files, await files.load(), { n: 1 });
    expect(seen[1]!.row).toMatchObject({
      uid: "sums/0:0",
      dataSource: "sums",
      groundTruth: 1,
    } satisfies Partial<DatasetRow>);
  });

  it("is judged by true and false too; a reward that throws has not judged it", async () => {
    const task = defineTask({
      rows: [{ question: "a" }, { question: "b" }],
      reward: ({ row }) => {
        if (row.question === "b") throw new Error("no");
        return true;
      },
    });
    const groups = await rollOut(openPolicy(), task, await task.load(), { n: 2 });
    expect(groups.trajectories.map(({ rewards }) => rewards.score)).toEqual([1, 1, null, null]);
    expect([groups.reward, groups.success]).toEqual([1, 1]);
  });
});

describe("the environment of a conversation", () => {
  const call = (name: string, args: object) =>
    `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`;

  it("has tools of the AI SDK and of tool(), which see the row when they are created", async () => {
    const created: unknown[] = [];
    const own = tool({
      name: "own",
      description: "Tells the truth.",
      inputSchema: z.object({}),
      create: ({ groundTruth, row }) => {
        created.push({ groundTruth, row });
        return { truth: String(groundTruth) };
      },
      execute: (_, { state }) => state.truth,
    });
    const weather = {
      description: "Tells the weather.",
      inputSchema: z.object({ city: z.string() }),
      execute: async ({ city }: { city: string }) => `rain in ${city}`,
    };
    const task = defineTask({
      rows: [{ question: "?", truth: "42" }],
      tools: [own, { weather }],
      toolFormat: "hermes",
      reward: ({ answer }) => answer === "42, rain in Rome",
    });
    const replies = [call("own", {}), call("weather", { city: "Rome" }), "42, rain in Rome"];
    let turn = 0;
    const groups = await rollOut(
      openPolicy(() => replies[turn++]!),
      task,
      await task.load(),
      { n: 1 },
    );
    expect(created).toEqual([{ groundTruth: "42", row: { question: "?", truth: "42" } }]);
    const texts = groups.trajectories[0]!.messages.map(({ content }) => content);
    expect(texts.slice(-4)).toEqual(["42", replies[1], "rain in Rome", replies[2]]);
    expect(groups.reward).toBe(1);
  });

  it("has an interaction, or a function that replies", async () => {
    const reply = ({ answer }: { answer: string }) =>
      answer === "4" ? { shouldTerminate: true as const, score: 1 } : "Try again.";
    for (const given of [interaction(reply), interaction({ name: "teacher", reply }), reply]) {
      const task = defineTask({ rows: [{ question: "2+2" }], interaction: given });
      const replies = ["5", "4"];
      let turn = 0;
      const groups = await rollOut(
        openPolicy(() => replies[turn++]!),
        task,
        await task.load(),
        { n: 1 },
      );
      const texts = groups.trajectories[0]!.messages.map(({ content }) => content);
      expect(texts).toEqual(["2+2", "5", "Try again.", "4"]);
    }
  });

  it("tool calls are read as the chat template prints them, unless the task says how", async () => {
    const render = (messages: readonly ChatMessage[], tools: readonly ToolSchema[], prompt: boolean) =>
      [
        ...tools.map((schema) => JSON.stringify(schema)),
        ...messages.map(({ role, content, tool_calls }) => {
          const calls = (tool_calls ?? []).map(({ function: { name, arguments: args } }) =>
            JSON.stringify({ name, parameters: args }),
          );
          return `<|im_start|>${role}\n${content}${calls.join("")}<|im_end|>`;
        }),
        ...(prompt ? ["<|im_start|>assistant\n"] : []),
      ].join("\n");
    const policy = openPolicy();
    const { engine } = policy;
    const tokenizer = { render, listEndTexts: () => ["<|im_end|>"], tokenizer: { listSpecialTokens: () => [] } };
    const rendering = new Policy({ ...policy, engine, tokenizer: tokenizer as unknown as DeltaTokenizer });
    const nothing = tool({ name: "n", description: "Does nothing.", inputSchema: z.object({}), execute: () => "" });
    const formatOf = async (given: Partial<TaskDefinition<object>>) =>
      (await defineTask({ rows: [{ question: "a" }], reward, ...given }).open(rendering)).multiTurn?.format;
    expect(await formatOf({ tools: [nothing] })).toBe("llama3_json");
    const told = await formatOf({ tools: [nothing], toolFormat: "python" });
    expect(told).not.toBe("llama3_json");
    expect(await formatOf({})).not.toBe("llama3_json");
  });
});

describe("an opened environment", () => {
  it("is opened once for each policy, is theirs at once, and is ended by dispose", async () => {
    const log: string[] = [];
    let opened = 0;
    const source: ToolSource = {
      name: "server",
      open: async () => {
        const id = ++opened;
        log.push(`open ${id}`);
        const dispose = () => void log.push(`end ${id}`);
        return [tool({ name: "t", description: "x", inputSchema: z.object({}), execute: () => "", dispose })];
      },
    };
    const task = defineTask({ rows: [{ question: "a" }], tools: [source], reward });
    const [a, b] = [openPolicy(), openPolicy()];
    const rows = await task.load();
    await Promise.all([rollOut(a, task, rows), rollOut(b, task, rows), rollOut(a, task, rows)]);
    expect(log.sort()).toEqual(["open 1", "open 2"]);
    await Promise.all([task.dispose(), task.dispose()]);
    expect(log.sort()).toEqual(["end 1", "end 2", "open 1", "open 2"]);
    await rollOut(a, task, rows);
    expect(opened).toBe(3);
    await task.dispose();
  });

  it("may be tried again when it failed", async () => {
    let isThere = false;
    const source: ToolSource = {
      name: "server",
      open: async () => {
        if (!isThere) throw new Error("no server");
        return [];
      },
    };
    const task = defineTask({ rows: [{ question: "a" }], tools: [source], reward });
    const policy = openPolicy();
    expect(String(await failureOf(() => task.open(policy)))).toContain("no server");
    isThere = true;
    expect((await task.open(policy)).tools.size).toBe(0);
    await task.dispose();
  });

  it("is refused where the policy's context is too small for it", async () => {
    const task = defineTask({ rows: [{ question: "a" }], reward, maxPromptLength: 9000 });
    expect(await failureOf(() => task.open(openPolicy()))).toMatchObject({
      code: "config/context-too-small",
      subject: expect.stringContaining("contextSize"),
      expected: expect.stringMatching(/9512 \(maxPromptLength 9000 /),
      remedy: expect.stringContaining("contextSize: 9512"),
    });
  });
});
