import { once } from "node:events";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { hashSeed } from "@cria/core";
import { FakeEngine, type FakeEngineOptions } from "@cria/core/testing";
import { TinyModels } from "@cria/engine/testing";
import { runRollouts } from "@cria/rollout";
import { defaultMultiTurn, parseRow } from "@cria/rollout/internal";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { BaseTool, CalculatorTool, type ExecuteOptions, type ToolResult } from "@cria/tools";
import { runSft, sftConfigSchema } from "@cria/trainer";
import { checkConfig } from "@cria/trainer/internal";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { introduce } from "../commands/chat.js";
import { exportRun } from "../export/export-run.js";
import { findTrained } from "../export/find-trained.js";
import { readInput } from "./chat-commands.js";
import { type ChatOptions, type ChatTurn, InteractiveChat } from "./interactive-chat.js";
import { type Chat, openChat } from "./open-chat.js";
import { chatByLines } from "./piped-chat.js";
import { chatInTerminal } from "./terminal-chat.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());
const say = () => undefined;
const fetch = async (path: string) => path;

describe("with the embedded policy and its calculator", () => {
  let chat: Chat;
  beforeAll(async () => {
    chat = await openChat({ seed: 0, threads: 1, say, fetch });
  });
  afterAll(() => chat.dispose());

  const question = "There are 70 marbles in a box and 28 marbles in a bag. How many marbles in total?";

  /** A rollout of the same prompt with this seed, and the seed of the same conversation. */
  async function rollOut(seed: number) {
    const system = { role: "system", content: chat.system };
    const row = parseRow({ data_source: "test", prompt: [system, { role: "user", content: question }] }, 0, "row 0");
    const [trajectory] = await runRollouts(chat.engine, [row], {
      tokenizer: chat.tokenizer,
      tools: chat.tools,
      multiTurn: chat.multiTurn,
      reward: () => 0,
      n: 1,
      ...chat.sampling,
      seed,
      step: 0,
      maxPromptLength: 200,
      responseLength: 200,
      truncation: "error",
      defaultAgentLoop: "tool_agent",
    });
    return { trajectory: trajectory!, seed: hashSeed(seed, 0, row.uid, 0) };
  }

  it("introduces the policy, with a question that it can answer: that of a run's first row", () => {
    const print = vi.spyOn(console, "log").mockReturnValue();
    const tell = (name: string, example: string | null) => {
      introduce({ ...chat, name, example });
      return print.mock.calls.splice(0).flat().join("\n");
    };
    expect(tell(chat.name, null)).toMatch(/70 marbles[\s\S]*knows.*word problems.*half a million parameters/);
    expect(tell("runs/demo", "How many stamps?")).toMatch(/try.*How many stamps\?[\s\S]*knows/);
    print.mockRestore();
  });

  const open = (seed: number) => new InteractiveChat({ ...chat, sampling: { ...chat.sampling, seed } });

  /** The turns of a conversation through piped standard input. */
  async function pipe(session: InteractiveChat, lines: string[]): Promise<(ChatTurn & { finish_reason: string })[]> {
    let text = "";
    const write = (piece: string) => {
      text += piece;
    };
    await chatByLines(session, { input: Readable.from([`${lines.join("\n")}\n`]), write, json: true });
    await session.close();
    return text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
  }

  it("answers as a rollout with the same seed, calls the tool and gives the right answer", async () => {
    expect(chat.system).toMatch(/Use the tool/);
    let solved = 0;
    for (let seed = 0; seed < 40; seed++) {
      const { trajectory, seed: own } = await rollOut(seed);
      const messages = trajectory.messages.slice(2);
      const called = messages.some(({ role }) => role === "tool");
      if (!called && seed > 2) continue;
      const [turn] = await pipe(open(own), [question]);
      expect(turn!.messages).toEqual(messages);
      if (!turn!.calls.some(({ failure }) => !failure) || turn!.answer !== "#### 98") continue;
      expect(turn!.calls).toEqual([{ name: "calculator", arguments: { expression: "70+28" }, result: "98" }]);
      expect(turn!.finish_reason).toBe("stop");
      if (++solved === 2) break;
    }
    expect(solved).toBeGreaterThan(0);
  });

  it("does not evaluate earlier messages again; after /undo the same message gets the same answer", async () => {
    const lines = [question, "And 5 more?", "/undo", "And 5 more?", "/retry", "/reset", question];
    const output = await pipe(open(3), lines);
    const [first, second, undone, again, retried, , anew] = output;
    expect(undone).toMatchObject({ command: "undo", text: "taken back: And 5 more?" });
    // A second message evaluates only its tokens, those of the template, and the last sampled one.
    expect(second!.tokens.prefilled).toBeLessThan(40);
    expect(second!.tokens.reused).toBeGreaterThan(first!.tokens.prefilled);
    expect(again!.messages).toEqual(second!.messages);
    expect(again!.tokens.prefilled).toBeLessThanOrEqual(second!.tokens.prefilled);
    expect(retried!.user).toBe("And 5 more?");
    expect(anew!.messages).toEqual(first!.messages);
  });

  it("a message that does not fit leaves the conversation as it was", async () => {
    const session = open(1);
    const whole = open(1);
    await session.say(question);
    await whole.say(question);
    await expect(session.say("9 ".repeat(600))).rejects.toMatchObject({
      code: "data/context-full",
      subject: "the message",
      expected: expect.stringMatching(/^at most \d+ tokens\b.* \d+ of 512$/),
    });
    expect((await session.say("And 5 more?")).messages).toEqual((await whole.say("And 5 more?")).messages);
    // Until no room is left.
    let error: unknown;
    for (let i = 0; i < 20 && !error; i++) await session.say(question).catch((caught: unknown) => (error = caught));
    expect(error).toMatchObject({ code: "data/context-full" });
    await session.close();
    await whole.close();
  });
});

/** A conversation with a scripted model. */
function makeFake(
  reply: FakeEngineOptions["reply"],
  more: Partial<ChatOptions> = {},
  engineOptions: Partial<FakeEngineOptions> = {},
) {
  const engine = new FakeEngine({ reply, contextSize: 4096, ...engineOptions });
  const session = new InteractiveChat({
    engine,
    tokenizer: DeltaTokenizer.forModel(engine),
    tools: new Map([["calculator", new CalculatorTool()]]),
    multiTurn: defaultMultiTurn,
    sampling: { temperature: 1, topP: 1, topK: 0, minP: 0, stop: [], maxTokensPerTurn: null, seed: 1 },
    system: null,
    ...more,
  });
  return { engine, session };
}

/** A tool that never answers until it is stopped. */
class SlowTool extends BaseTool {
  readonly begun = vi.fn();

  constructor() {
    const { function: calculator } = new CalculatorTool().schema;
    super({ type: "function", function: { ...calculator, name: "slow" } });
  }

  override execute(_id: string, _parameters: object, { signal }: ExecuteOptions = {}): Promise<ToolResult> {
    this.begun();
    return new Promise((_, reject) => {
      signal?.addEventListener("abort", () => reject(signal.reason));
    });
  }
}

const call = (name: string) => `<tool_call>\n{"name": "${name}", "arguments": {"expression": "6*7"}}\n</tool_call>`;

describe("tools", () => {
  it("errors of unknown tools are shown to the model and to the person", async () => {
    const { engine, session } = makeFake(({ turn }) => (turn === 0 ? call("oracle") : "I have none"));
    const turn = await session.say("6*7?");
    expect(turn.calls).toEqual([expect.objectContaining({ name: "oracle", failure: "unknown_tool" })]);
    expect(turn.answer).toBe("I have none");
    await session.close();
    expect(engine.counts.disposed).toBe(engine.counts.created);
  });

  it("a stopped call has an answer too, which the model sees once, before the next message", async () => {
    const seen: string[] = [];
    const tool = new SlowTool();
    const { session } = makeFake(
      ({ turn, text }) => {
        seen.push(text);
        return turn === 0 ? call("slow") : "never mind";
      },
      { tools: new Map([["slow", tool]]) },
    );
    const controller = new AbortController();
    const said = session.say("wait", {}, controller.signal);
    await vi.waitFor(() => expect(tool.begun).toHaveBeenCalled());
    controller.abort(new Error("enough"));
    const turn = await said;
    expect(turn.finishReason).toBe("aborted");
    expect(turn.calls).toHaveLength(1);
    await session.say("well?");
    expect(session.conversation.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "user", "assistant"]);
    expect(seen[1]!.match(/<tool_response>/g)).toHaveLength(1);
    expect(seen[1]!.indexOf("<tool_response>")).toBeLessThan(seen[1]!.indexOf("well?"));
    await session.close();
  });

  it("end after a number of turns", async () => {
    const { session } = makeFake(() => call("calculator"));
    const turn = await session.say("6*7?");
    expect(turn.finishReason).toBe("turns");
    expect(turn.calls.length).toBeLessThan(20);
    await session.close();
  });
});

/** A terminal that the test types into. */
function openTerminal(session: InteractiveChat, signal?: AbortSignal) {
  const input = new PassThrough() as unknown as PassThrough & { isTTY: boolean };
  const output = Object.assign(new PassThrough(), { columns: 80 });
  let screen = "";
  output.on("data", (text) => {
    screen += text;
  });
  const ended = chatInTerminal(session, { input, output, signal });
  const waitFor = async (text: string | RegExp) => {
    while (typeof text === "string" ? !screen.includes(text) : !text.test(screen)) await once(output, "data");
    const seen = screen;
    screen = "";
    return seen;
  };
  return { type: (text: string) => input.write(text), ended, waitFor };
}

describe("in a terminal", () => {
  it("shows answers, calls and results; nothing that the model says acts on the terminal", async () => {
    const { session } = makeFake(({ turn }) =>
      turn === 0 ? `\x1b[2J${call("calculator")}` : "It is\x1b]0;mine\x07 42\r",
    );
    const terminal = openTerminal(session);
    await terminal.waitFor("> ");
    terminal.type("6*7?\n");
    const seen = await terminal.waitFor("context ");
    expect(seen).toContain("\\x1b[2J");
    expect(seen).toContain('calculator {"expression":"6*7"}\n    42');
    expect(seen).toContain("It is\\x1b]0;mine\\x07 42\\x0d");
    expect(seen).not.toContain("\x1b[2J");
    expect(seen).not.toContain("\x07");
    terminal.type("/undoo\n");
    await terminal.waitFor("perhaps /undo");
    terminal.type("/undo\n");
    await terminal.waitFor("taken back: 6*7?");
    terminal.type("/system Be\\\nkind\n");
    await terminal.waitFor("with that system message");
    expect(session.system).toBe("Be\nkind");
    terminal.type("\x04");
    expect(await terminal.ended).toBe(0);
    await session.close();
  });

  it("Ctrl-C stops an answer, and at the prompt it ends", async () => {
    // It takes a minute to answer.
    const { engine, session } = makeFake(() => "late", {}, { latencyMs: 60_000 });
    const terminal = openTerminal(session);
    await terminal.waitFor("> ");
    terminal.type("hello\n");
    await vi.waitFor(() => expect(engine.counts.inFlight).toBe(1));
    terminal.type("\x03");
    await terminal.waitFor("stopped; it goes on from here");
    terminal.type("\x03");
    expect(await terminal.ended).toBe(130);
    await session.close();
  });
});

describe("typed input", () => {
  it("is a message, a command, or a message that begins with a slash", () => {
    expect(readInput("hi /undo")).toEqual({ kind: "message", text: "hi /undo" });
    expect(readInput("/system Be kind.")).toEqual({ kind: "command", name: "system", argument: "Be kind." });
    expect(readInput("/exit")).toMatchObject({ name: "quit" });
    expect(readInput("//etc is a folder")).toEqual({ kind: "message", text: "/etc is a folder" });
    expect(readInput("/rest")).toMatchObject({ kind: "unknown", text: expect.stringContaining("perhaps /reset") });
    expect(readInput("/etc/passwd is a file")).toMatchObject({ kind: "message" });
  });
});

describe("the target of a chat", () => {
  const greet = async (options: Parameters<typeof openChat>[0]) => {
    const chat = await openChat({ temperature: 0, seed: 1, maxTokens: 8, context: 120, threads: 1, ...options });
    const session = new InteractiveChat(chat);
    const { answer } = await session.say("a?");
    const { system, example } = chat;
    await session.close();
    await chat.dispose();
    return { answer, system, example };
  };

  it("is a model, an adapter, a run, or one of its checkpoints", async () => {
    const folder = join(models.folder, "talks");
    mkdirSync(folder);
    const talk = [
      { role: "system", content: "s" },
      { role: "user", content: "a?" },
      { role: "assistant", content: "yes" },
    ];
    writeFileSync(join(folder, "talks.jsonl"), JSON.stringify({ messages: talk }));
    const path = await models.write();
    const config = checkConfig(
      sftConfigSchema,
      {
        model: { path, lora_rank: 4 },
        data: { train_files: "talks.jsonl", train_batch_size: 2 },
        optim: { lr: 3e-2 },
        trainer: { default_local_dir: folder, total_training_steps: 60, save_freq: 30, threads: 1 },
      },
      "test",
    );
    const run = await runSft(config, folder);
    const trained = { answer: "yes", system: "s", example: "a?" };
    const elsewhere = { ...trained, example: null };
    const untrained = await greet({ target: path, say, fetch });
    expect(untrained.answer).not.toBe("yes");
    expect(untrained.system).toBeNull();
    expect(await greet({ target: run.path, say, fetch })).toEqual(trained);
    expect(await greet({ target: run.path, step: 60, say, fetch })).toEqual(trained);
    expect(await greet({ target: run.output, say, fetch })).toEqual(trained);
    expect(await greet({ target: path, adapter: run.output, system: "s", say, fetch })).toEqual(elsewhere);
    // An exported adapter outside any run folder.
    const adapter = join(models.folder, "elsewhere.gguf");
    await exportRun(await findTrained(run.path, null, say), { adapter, merged: null, quantize: null });
    expect(existsSync(adapter)).toBe(true);
    expect(await greet({ target: adapter, base: path, system: "s", say, fetch })).toEqual(elsewhere);
    await expect(openChat({ target: adapter, say, fetch })).rejects.toMatchObject({
      code: "config/no-base-model",
      subject: expect.stringContaining("elsewhere.gguf"),
    });
    await expect(openChat({ target: run.path, step: 7, say, fetch })).rejects.toMatchObject({
      code: "config/bad-argument",
      subject: "--step 7",
      expected: "30, 60",
    });
    await expect(openChat({ target: run.path, adapter, say, fetch })).rejects.toMatchObject({
      code: "config/bad-argument",
      subject: "--adapter",
    });
    await expect(openChat({ target: "nowhere.gguf", say, fetch })).rejects.toMatchObject({
      code: "config/path-missing",
      subject: "model, adapter or run",
      received: expect.stringContaining("nowhere.gguf"),
    });
  });
});
