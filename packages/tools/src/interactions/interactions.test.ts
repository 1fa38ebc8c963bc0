import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ChatMessage } from "@cria/core";
import { FakeEngine } from "@cria/core/testing";
import { afterAll, afterEach, describe, expect, it, vi } from "vitest";
import {
  BaseInteraction,
  CodeExecutionInteraction,
  type CodeExecutor,
  createInteractions,
  EngineChatModel,
  Gsm8kInteraction,
  importExport,
  interactionClasses,
  provideHostModules,
  registerInteractionClass,
  SimulatedUserInteraction,
} from "../internal.js";

const folder = mkdtempSync(join(tmpdir(), "cria-interactions-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Plays a conversation: gives the assistant's answers, turn by turn, until the interaction ends it. */
async function play(interaction: BaseInteraction, kwargs: Record<string, unknown>, answers: readonly string[]) {
  const messages: ChatMessage[] = [{ role: "user", content: "the problem" }];
  const replies = [];
  await interaction.startInteraction("id", kwargs);
  for (const content of answers) {
    messages.push({ role: "assistant", content });
    const reply = await interaction.generateResponse("id", messages, { seed: 3 });
    replies.push(reply);
    if (reply.shouldTerminate) break;
    messages.push({ role: "user", content: reply.content });
  }
  const score = await interaction.calculateScore("id");
  await interaction.finalizeInteraction("id");
  return { replies, score, texts: replies.map((reply) => reply.content) };
}

describe("CodeExecutionInteraction in its sandbox", () => {
  it("runs programs against the row's tests", async () => {
    const interaction = new CodeExecutionInteraction({ language: "javascript", timeout: 20 });
    const test_cases = [{ input: "double(4)", expected: 8 }];
    const answer = (body: string) => `\`\`\`js\nfunction double(x) { return ${body}; }\n\`\`\``;
    const { texts, score } = await play(interaction, { test_cases }, [answer("x + 2"), answer("2 * x")]);
    expect(texts).toEqual([expect.stringContaining("6"), "All tests passed."]);
    expect(score).toBe(1);
  });
});

describe("Gsm8kInteraction", () => {
  it("gives hints, does not tell the answer, and ends when the answer is right", async () => {
    const { texts, replies, score } = await play(new Gsm8kInteraction({ max_hints: 9 }), { ground_truth: "1,200" }, [
      "I do not know",
      "#### 12",
      "#### 12",
      "#### -1200",
      "it must be #### 1210",
      "#### 55",
      "so #### 1,200.",
    ]);
    expect(texts).toEqual([
      expect.stringMatching(/####/),
      expect.stringMatching(/units/),
      expect.stringMatching(/before/),
      expect.stringMatching(/sign/),
      expect.stringMatching(/close/),
      expect.stringMatching(/steps/),
      expect.stringMatching(/correct/),
    ]);
    expect(texts.join(" ")).not.toMatch(/1,?200/);
    expect(replies.map((r) => r.shouldTerminate)).toEqual([false, false, false, false, false, false, true]);
    expect(score).toBe(1);
  });

  it("ends without a solution after max_hints; the last number counts where there is no ####", async () => {
    const lost = await play(new Gsm8kInteraction({ hint_penalty: -0.1 }), { ground_truth: 7 }, ["1", "2", "3", "7"]);
    expect(lost.replies.map((r) => r.score)).toEqual([-0.1, -0.1, 0]);
    expect(lost.score).toBe(0);
    const won = await play(new Gsm8kInteraction(), { ground_truth: 7 }, ["3 and 4 make 7"]);
    expect(won).toMatchObject({ score: 1, replies: [{ score: 1 }] });
    const without = await play(new Gsm8kInteraction(), {}, ["#### 3", "#### 3", "#### 3"]);
    expect(without.score).toBe(0);
  });
});

describe("CodeExecutionInteraction", () => {
  const programs: string[] = [];
  /** Runs one function, and programs that echo. */
  const executor: CodeExecutor = {
    run: async (code, { input }) => {
      programs.push(code);
      if (code.includes("boom")) return { stdout: "", error: `NameError: ${"x".repeat(500)}` };
      if (input !== undefined) return { stdout: `${input}\n` };
      const [, a, b] = /print\(add\((\d+), (\d+)\)\)/.exec(code)!;
      return { stdout: `${code.includes("a + b") ? Number(a) + Number(b) : Number(a) * Number(b)}\n` };
    },
  };
  const test_cases = [
    { input: "add(2, 2)", expected: 4 },
    { input: "add(2, 3)", expected: 5 },
    { stdin: "hello", expected: "hello" },
  ];
  const code = (body: string) => `Here:\n\`\`\`python\ndef add(a, b):\n    return ${body}\n\`\`\`\nDone.`;

  it("shows failed tests, scores improvement, and ends when all pass", async () => {
    const interaction = new CodeExecutionInteraction({ executor });
    const { texts, replies, score } = await play(interaction, { test_cases }, [
      code("boom"),
      code("a * b"),
      code("a + b"),
    ]);
    expect(texts[0]).toMatch(/^0 of 3 tests passed\.\n- add\(2, 2\): NameError/);
    expect(texts[0]!.length).toBeLessThan(1000);
    expect(texts[1]).toMatch(/^2 of 3 tests passed\.\n- add\(2, 3\): expected 5, got 6\nCorrect/);
    expect(texts[2]).toBe("All tests passed.");
    expect(replies.map((r) => r.score)).toEqual([0, 2 / 3, 1 - 2 / 3]);
    expect(replies.at(-1)!.shouldTerminate).toBe(true);
    expect(score).toBe(1);
    expect(programs[0]).toBe("def add(a, b):\n    return boom\n\nprint(add(2, 2))\n");
    const lost = await play(new CodeExecutionInteraction({ executor, max_attempts: 2 }), { test_cases }, [
      "boom",
      "boom",
      "boom",
    ]);
    expect(lost.replies).toHaveLength(2);
  });

  it("runs tests at once, and counts those after the first one that takes too long as failed, in any order of their ends", async () => {
    const aborted: string[] = [];
    const slow: CodeExecutor = {
      run: async (code, { signal }) => {
        const test = /print\(f\((\d)\)\)/.exec(code)![1]!;
        // The fourth test ends before the second is stopped; the third would never end.
        if (test === "1") await new Promise((resolve) => setTimeout(resolve, 50));
        if (test === "2") await new Promise((resolve) => signal!.addEventListener("abort", resolve));
        if (signal!.aborted) aborted.push(test);
        return test === "1" ? { stdout: "", error: "error: stopped", timedOut: true } : { stdout: test };
      },
    };
    const tests = [0, 1, 2, 3].map((i) => ({ input: `f(${i})`, expected: i }));
    const { replies, score } = await play(new CodeExecutionInteraction({ executor: slow }), { test_cases: tests }, [
      "x",
    ]);
    expect(replies[0]).toMatchObject({ score: 0.25, data: { tests_passed: 1, tests_run: 4 } });
    expect(replies[0]!.content).toMatch(
      /^1 of 4 tests passed\.\n- f\(1\): error: stopped\n- f\(2\): not run.*\n- f\(3\): not run/,
    );
    expect(aborted).toEqual(["2"]);
    expect(score).toBe(0.25);
  });

  it("gives its sandboxes their options, ends them, and refuses keys that it does not know", async () => {
    const interaction = new CodeExecutionInteraction({ language: "js", timeout: 20, output_bytes: 64, num_workers: 2 });
    const test_cases = [{ input: "'x'.repeat(1000)", expected: "" }];
    const [reply] = (await play(interaction, { test_cases }, [""])).replies;
    expect(reply!.content).toContain(`got ${"x".repeat(64)}\n`);
    await interaction.dispose();
    await interaction.startInteraction("late", { test_cases });
    await expect(interaction.generateResponse("late", [])).rejects.toMatchObject({ code: "tool/disposed" });
    expect(() => new CodeExecutionInteraction({ num_worker: 2 })).toThrow(
      expect.objectContaining({
        code: "config/bad-value",
        subject: "config of code_execution",
        received: '{"num_worker":2}',
      }),
    );
    expect(() => new CodeExecutionInteraction({ language: "perl" })).toThrow(
      expect.objectContaining({ code: "config/bad-value", subject: "config of code_execution.language" }),
    );
  });

  it("names the missing part", async () => {
    expect(() => new CodeExecutionInteraction({ executor: {} })).toThrow(
      expect.objectContaining({ code: "config/bad-value", subject: "config of code_execution.executor" }),
    );
    const interaction = new CodeExecutionInteraction({ executor });
    await expect(interaction.startInteraction("id", {})).rejects.toMatchObject({
      code: "config/bad-value",
      subject: "config of code_execution.test_cases",
    });
  });
});

describe("SimulatedUserInteraction", () => {
  const servers: Server[] = [];
  afterEach(() => Promise.all(servers.splice(0).map((server) => new Promise((resolve) => server.close(resolve)))));

  interface Request {
    url: string;
    headers: IncomingHttpHeaders;
    body: { model: string; messages: ChatMessage[]; temperature: number; max_tokens: number; seed: number };
  }
  /** Answers like a chat completions endpoint; `respond` may give another status and body. */
  async function serve(respond: (request: Request, count: number) => string | [number, string]) {
    const requests: Request[] = [];
    const server = createServer((incoming, outgoing) => {
      let text = "";
      incoming.on("data", (chunk) => {
        text += chunk;
      });
      incoming.on("end", () => {
        const request = { url: incoming.url!, headers: incoming.headers, body: JSON.parse(text) };
        requests.push(request);
        const said = respond(request, requests.length);
        const [status, body] =
          typeof said === "string"
            ? [200, JSON.stringify({ choices: [{ message: { role: "assistant", content: said } }] })]
            : said;
        outgoing.writeHead(status, { "content-type": "application/json" }).end(body);
      });
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const base_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    return { base_url, requests };
  }

  it("speaks through an OpenAI-compatible endpoint, from the user's side", async () => {
    const { base_url, requests } = await serve((_, count) => (count === 1 ? " And the colour? " : "Thanks! [DONE]"));
    vi.stubEnv("CRIA_TEST_KEY", "secret");
    const config = { base_url: `${base_url}/`, user_model: "user-1", api_key_env: "CRIA_TEST_KEY", max_tokens: 9 };
    const { texts, score } = await play(new SimulatedUserInteraction(config), { goal: "learn {all} of $& it" }, [
      "It is a llama.",
      "Brown.",
    ]);
    expect(texts[0]).toBe("And the colour?");
    expect(score).toBe(1);
    expect(requests[1]).toMatchObject({
      url: "/v1/chat/completions",
      headers: { authorization: "Bearer secret" },
      body: { model: "user-1", max_tokens: 9, temperature: 1, seed: 3 },
    });
    const [system, ...rest] = requests[1]!.body.messages;
    expect(system!.content).toContain("learn {all} of $& it");
    expect(rest).toEqual([
      { role: "assistant", content: "the problem" },
      { role: "user", content: "It is a llama." },
      { role: "assistant", content: "And the colour?" },
      { role: "user", content: "Brown." },
    ]);
  });

  it("tries again when the endpoint is busy, and not when it refuses or makes no sense", async () => {
    const config = { retry_delay_s: 0.001, num_retries: 2 };
    const busy = await serve((_, count) => (count < 3 ? [503, "busy"] : "hello"));
    const { texts } = await play(new SimulatedUserInteraction({ ...config, base_url: busy.base_url }), {}, ["x"]);
    expect(texts).toEqual(["hello"]);
    for (const [answer, error, count] of [
      [[500, "down"], { code: "interaction/endpoint-busy", received: "HTTP 500: down" }, 3],
      [[401, "no key"], { code: "interaction/endpoint-refused", received: "HTTP 401: no key" }, 1],
      [[200, "<html>"], { code: "interaction/endpoint-answer", received: "<html>" }, 1],
    ] as const) {
      const { base_url, requests } = await serve(() => [answer[0], answer[1]]);
      await expect(play(new SimulatedUserInteraction({ ...config, base_url }), {}, ["x"])).rejects.toMatchObject(error);
      expect(requests).toHaveLength(count);
    }
  });

  it("an abort ends the request", async () => {
    const server = createServer(() => undefined);
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const base_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const interaction = new SimulatedUserInteraction({ base_url });
    await interaction.startInteraction("id", {});
    const signal = AbortSignal.timeout(30);
    await expect(interaction.generateResponse("id", [], { signal })).rejects.toThrow();
    server.closeAllConnections();
  });

  it("speaks through a second model in this process, and disposes its sequences", async () => {
    const seen: string[] = [];
    const engine = new FakeEngine({
      reply: ({ text }) => {
        seen.push(text);
        return seen.length < 2 ? "why?" : "[GIVE UP]";
      },
    });
    const model = new EngineChatModel(engine, (messages) =>
      engine.tokenize(messages.map(({ role, content }) => `${role}: ${content}\n`).join("")),
    );
    const { texts, score } = await play(new SimulatedUserInteraction({ model }), { query: "a reason" }, [
      "so",
      "because",
    ]);
    expect(texts).toEqual(["why?", "[GIVE UP]"]);
    expect(score).toBe(0);
    expect(seen[1]).toContain("assistant: why?\nuser: because\n");
    expect(engine.counts.created).toBe(2);
    expect(engine.counts.disposed).toBe(2);
    const small = new EngineChatModel(new FakeEngine({ reply: () => "", contextSize: 4 }), () => [1, 2, 3, 4]);
    await expect(small.answer([], { temperature: 0, maxTokens: 1 })).rejects.toMatchObject({
      code: "interaction/context-exceeded",
      subject: "conversation",
      expected: "fewer than 4 tokens",
    });
  });

  it("ends after max_user_messages, and needs some model", async () => {
    const model = { answer: async () => "and?" };
    const { replies } = await play(new SimulatedUserInteraction({ model, max_user_messages: 2 }), {}, [
      "a",
      "b",
      "c",
      "d",
    ]);
    expect(replies.map((r) => r.shouldTerminate)).toEqual([false, false, true]);
    expect(() => new SimulatedUserInteraction()).toThrow(
      expect.objectContaining({
        code: "config/bad-value",
        subject: "config of simulated_user",
        expected: expect.stringContaining("base_url"),
      }),
    );
  });
});

describe("createInteractions", () => {
  it("knows ours and the names of the field's shipped examples", async () => {
    const interactions = await createInteractions(
      [
        { name: "gsm8k", class_name: "verl.interactions.gsm8k_interaction.Gsm8kInteraction", config: { max_hints: 1 } },
        {
          name: "collabllm",
          class_name: "verl.interactions.collabllm_interation.CollabLLMInteraction",
          config: {
            user_model: "m",
            num_retries: 5,
            max_tokens: 512,
            temperature: 1,
            base_url: "http://127.0.0.1:1/v1",
          },
        },
        { class_name: "@cria/tools#CodeExecutionInteraction" },
      ],
      folder,
    );
    expect([...interactions.keys()]).toEqual(["gsm8k", "collabllm", "code_execution"]);
    expect(interactions.get("gsm8k")).toBeInstanceOf(Gsm8kInteraction);
    expect(interactions.get("gsm8k")!.config).toEqual({ max_hints: 1 });
  });

  it("loads TypeScript as it is; its imports of Cria are this program's", async () => {
    provideHostModules({ "@cria/tools": await import("../index.js") });
    writeFileSync(
      join(folder, "mine.ts"),
      `import { BaseInteraction } from "@cria/tools";
import type { ChatMessage } from "@cria/core";
import { twice } from "./helper.ts";
export class Mine extends BaseInteraction {
  private readonly started: Set<string> = new Set();
  override async startInteraction(id: string): Promise<void> { this.started.add(id); }
  override async generateResponse(id: string, messages: readonly ChatMessage[]) {
    return { shouldTerminate: true, content: twice(messages[0]!.content), score: 1 };
  }
  override async finalizeInteraction(id: string): Promise<void> { this.started.delete(id); }
}
export class NotOne {}
`,
    );
    writeFileSync(join(folder, "helper.ts"), "export const twice = (text: string): string => text + text;\n");
    const interactions = await createInteractions([{ name: "mine", class_name: "./mine.ts#Mine" }], folder);
    const mine = interactions.get("mine")!;
    expect(mine).toBeInstanceOf(BaseInteraction);
    expect(await play(mine, {}, ["x"])).toMatchObject({ texts: ["the problemthe problem"], score: 0 });
    await expect(createInteractions([{ class_name: "./mine.ts#NotOne" }], folder)).rejects.toMatchObject({
      code: "interaction/not-one",
      subject: 'class_name "./mine.ts#NotOne"',
      received: "no startInteraction, generateResponse, calculateScore, finalizeInteraction",
    });
    await expect(createInteractions([{ class_name: "./mine.ts#Other" }], folder)).rejects.toMatchObject({
      code: "config/unreadable",
      subject: 'class_name "./mine.ts#Other"',
      received: "exports Mine, NotOne",
    });
    await expect(createInteractions([{ class_name: "Mine" }], folder)).rejects.toMatchObject({
      code: "config/unreadable",
      subject: 'class_name "Mine"',
      received: "a name without #Export",
    });
    await expect(importExport("./none.mjs#X", folder, "path")).rejects.toMatchObject({
      code: "config/unreadable",
      subject: 'path "./none.mjs#X"',
      received: expect.stringContaining("none.mjs"),
    });
  });

  it("names are unique, wrong configs say where, and classes can be registered", async () => {
    const entry = { class_name: "@cria/tools#Gsm8kInteraction" };
    await expect(createInteractions([entry, entry], folder)).rejects.toMatchObject({
      code: "interaction/duplicate",
      subject: 'interaction "gsm8k"',
    });
    await expect(createInteractions([{ ...entry, config: { max_hints: "two" } }], folder)).rejects.toMatchObject({
      code: "config/bad-value",
      subject: "config of gsm8k.max_hints",
      received: '"two"',
    });
    registerInteractionClass("tests.Own", Gsm8kInteraction);
    expect((await createInteractions([{ name: "own", class_name: "tests.Own" }], folder)).size).toBe(1);
    const ofRun = interactionClasses.extend();
    ofRun.register("of.Run", Gsm8kInteraction);
    expect((await createInteractions([{ class_name: "of.Run" }], folder, ofRun)).size).toBe(1);
    await expect(createInteractions([{ class_name: "of.Run" }], folder)).rejects.toMatchObject({
      code: "config/unreadable",
      subject: 'class_name "of.Run"',
    });
    await expect(new Gsm8kInteraction().generateResponse("nobody", [])).rejects.toMatchObject({
      code: "interaction/unknown-instance",
      subject: "instance nobody of gsm8k",
    });
  });
});
