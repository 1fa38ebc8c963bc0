import { setTimeout as sleep } from "node:timers/promises";
import type { ChatMessage, ToolSchema } from "@cria/core";
import { type FakeContext, FakeEngine, type FakeReply, fakeChatTemplate } from "@cria/core/testing";
import { layOutGraph, type RecordedCall } from "@cria/episodes";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { describe, expect, it, vi } from "vitest";
import type { ChatAnswer, ChatEvent, ChatRequest } from "./chat-model.js";
import { ChatSession, type ChatSessionOptions } from "./chat-session.js";

const lookUp: ToolSchema = {
  type: "function",
  function: { name: "look_up", parameters: { type: "object", properties: { word: { type: "string" } } } },
};

function call(word: string): string {
  return `<tool_call>\n{"name": "look_up", "arguments": {"word": "${word}"}}\n</tool_call>`;
}

/** The last question, echoed; "look up X" calls the tool. */
function echo({ text, options }: FakeContext): FakeReply {
  const last = text.split("<|im_start|>").at(-2)!;
  const word = /look up (\w+)/.exec(last)?.[1];
  return word
    ? call(word)
    : `${last
        .split("\n")
        .slice(1)
        .join(" ")
        .replace(/<\|im_end\|>\s*$/, "")
        .trim()} #${options.seed}`;
}

function open(
  options: Partial<ChatSessionOptions> = {},
  reply: (context: FakeContext) => FakeReply = echo,
  latencyMs = 1,
) {
  const engine = new FakeEngine({ reply, latencyMs });
  const tokenizer = DeltaTokenizer.forModel(engine);
  const session = new ChatSession({ engine, tokenizer, name: "fake", id: "s", format: "hermes", seed: 7, ...options });
  return { engine, session, tokenizer };
}

const user = (content: string): ChatMessage => ({ role: "user", content });
const ask = (content: string, ...before: ChatMessage[]): ChatRequest => ({ messages: [...before, user(content)] });
const recorded = (content: string): RecordedCall => ({
  parent: -1,
  messages: [user(content)],
  tools: [],
  request: {},
  sibling: 0,
});

describe("ChatSession", () => {
  it("continues the sampled tokens, even if the client changed the message", async () => {
    const { session, engine } = open();
    const tools = [lookUp];
    const first = await session.complete({ ...ask("look up llama"), tools });
    expect(first).toMatchObject({ finishReason: "tool_calls", message: { content: "" } });
    const [toolCall] = first.message.tool_calls!;
    expect(toolCall).toMatchObject({ function: { name: "look_up", arguments: '{"word":"llama"}' } });
    expect(toolCall!.id).toMatch(/^[0-9a-z]{9}$/);
    // As a framework keeps it: arguments printed again, thoughts gone, null for no text.
    const kept: ChatMessage = {
      role: "assistant",
      content: "  ",
      tool_calls: [{ ...toolCall!, function: { name: "look_up", arguments: { word: "llama" } } }],
    };
    const answer: ChatMessage = { role: "tool", content: "an animal", tool_call_id: toolCall!.id };
    const second = await session.complete({ messages: [user("look up llama"), kept, answer], tools });
    const whole = [...first.promptTokenIds, ...first.tokenIds];
    expect([...second.promptTokenIds.slice(0, whole.length)]).toEqual(whole);
    expect(engine.detokenize(second.promptTokenIds.slice(whole.length))).toBe(
      "\n<|im_start|>user\n<tool_response>\nan animal\n</tool_response><|im_end|>\n<|im_start|>assistant\n",
    );
    expect(session.metrics).toMatchObject({ chat_calls: 2, chat_roots: 1 });
    // Only what is new was evaluated: the delta, and the last sampled token.
    expect(second.usage.reusedTokens).toBe(whole.length - 1);
    session.dispose();
    expect(engine.counts.created).toBe(engine.counts.disposed);
  });

  it("without tools finds no calls, but thoughts all the same", async () => {
    const said = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes.";
    const gptOss = open({ format: "gpt_oss" }, () => said).session;
    expect((await gptOss.complete(ask("?"))).message).toMatchObject({ content: "Yes.", reasoning_content: "Hm." });
    const hermes = open({}, () => `<think>Hm.</think>${call("a")}`).session;
    expect(await hermes.complete(ask("?"))).toMatchObject({
      finishReason: "stop",
      message: { content: call("a"), reasoning_content: "Hm." },
    });
  });

  it("an edited history opens a branch, an unknown one a root; text of others has mask 0", async () => {
    const { session, engine } = open();
    const first = await session.complete(ask("a"));
    await session.complete(ask("b", user("a"), first.message));
    const edited: ChatMessage = { role: "assistant", content: "mine" };
    await session.complete(ask("c", user("a"), first.message, user("b"), edited));
    await session.complete(ask("d", user("elsewhere"), { role: "assistant", content: "unknown" }));
    expect(session.metrics).toMatchObject({ chat_calls: 4, chat_roots: 2, chat_branches: 1 });
    const episode = layOutGraph(session.graph, {
      credit: "all_branches",
      trainOnConstrained: false,
      trainOnToolCalls: true,
    })!;
    expect(episode.answers).toBe(4);
    const text = (mask: 0 | 1) =>
      engine.detokenize(episode.tokenIds.filter((_, t) => episode.responseMask[t] === mask));
    expect(text(0)).toContain("mine");
    expect(text(0)).toContain("unknown");
    expect(text(1)).not.toMatch(/mine|unknown/);
    expect(episode.segments).toHaveLength(4);
    expect(episode.segments!.filter(({ parent }) => parent === -1)).toHaveLength(2);
    // The shared beginning stands there once.
    expect(engine.detokenize(episode.tokenIds).split("<|im_start|>user\na<|im_end|>")).toHaveLength(2);
  });

  const foreign = (content: string): ChatMessage => ({ role: "assistant", content });
  const beginnings: [what: string, messages: ChatMessage[]][] = [
    ["a plain question", [user("first")]],
    ["an example of an answer", [user("2 + 2"), foreign("4"), user("first")]],
    ["two examples, one after the other", [user("2 + 2"), foreign("4"), foreign("5"), user("first")]],
    ["a greeting", [foreign("Welcome."), user("first")]],
    ["a summary", [{ role: "system", content: "s" }, user("go on"), foreign("What was said."), user("first")]],
  ];
  it.each(beginnings)("a conversation that began with %s goes on: the same tokens, one root", async (_, beginning) => {
    const { session } = open();
    let messages = beginning;
    let before: number[] = [];
    for (let turn = 0; turn < 5; turn++) {
      const { message, promptTokenIds, tokenIds } = await session.complete({ messages });
      expect([...promptTokenIds].slice(0, before.length)).toEqual(before);
      before = [...promptTokenIds, ...tokenIds];
      messages = [...messages, message, user(`more ${turn}`)];
    }
    expect(session.metrics).toMatchObject({ chat_calls: 5, chat_roots: 1, chat_branches: 0 });
    const episode = layOutGraph(session.graph, {
      credit: "last_branch",
      trainOnConstrained: false,
      trainOnToolCalls: true,
    })!;
    expect([...episode.tokenIds]).toEqual(before);
    expect(episode.segments).toBeUndefined();
  });

  it("goes on behind an example of an answer that is asked for itself meanwhile", async () => {
    const { session } = open({}, ({ text, options }) =>
      text.endsWith("2<|im_end|>\n<|im_start|>assistant\n") ? "4" : `${options.seed}`,
    );
    let messages = [user("2 + 2"), foreign("4"), user("first")];
    let before: number[] = [];
    for (let turn = 0; turn < 4; turn++) {
      if (turn === 2) expect((await session.complete(ask("2 + 2"))).message.content).toBe("4");
      const { message, promptTokenIds, tokenIds } = await session.complete({ messages });
      expect([...promptTokenIds].slice(0, before.length)).toEqual(before);
      before = [...promptTokenIds, ...tokenIds];
      messages = [...messages, message, user(`more ${turn}`)];
    }
    expect(session.metrics).toMatchObject({ chat_calls: 5, chat_roots: 2, chat_branches: 0 });
  });

  it("goes on behind answers that others edited in its middle: one branch for each edit", async () => {
    const { session } = open();
    let messages = [user("a")];
    for (let turn = 0; turn < 8; turn++) {
      const { message } = await session.complete({ messages });
      // Two answers in a row that are not its own, then one more.
      const isEdited = turn === 1 || turn === 2 || turn === 5;
      messages = [...messages, isEdited ? foreign(`mine ${turn}`) : message, user(`more ${turn}`)];
    }
    expect(session.metrics).toMatchObject({ chat_calls: 8, chat_roots: 1, chat_branches: 3 });
    const { segments } = layOutGraph(session.graph, {
      credit: "all_branches",
      trainOnConstrained: false,
      trainOnToolCalls: true,
    })!;
    // Edits in a row are one input each: an answer that was replaced is an end.
    expect(segments!.filter(({ parent }) => parent === -1)).toHaveLength(1);
  });

  it("goes on where the template prints an input only within a whole conversation", async () => {
    const template = fakeChatTemplate.replace(
      "{%- for message in messages -%}",
      "{%- for message in messages -%}{%- if message.content == 'alone' and messages[0].content != 'a' -%}{{ raise_exception('no') }}{%- endif -%}",
    );
    expect(template).not.toBe(fakeChatTemplate);
    const engine = new FakeEngine({ reply: echo, chatTemplate: template });
    const { session } = open({ engine, tokenizer: DeltaTokenizer.forModel(engine) });
    let messages = [user("a")];
    for (const next of ["alone", "b", "c", "d"]) {
      const { message } = await session.complete({ messages });
      messages = [...messages, message, user(next)];
    }
    await session.complete({ messages });
    expect(session.graph.roots.size).toBe(2);
    expect(session.metrics).toMatchObject({ chat_calls: 5, chat_roots: 1, chat_branches: 1 });
    session.dispose();
  });

  it("siblings with equal text are distinguished by their thoughts", async () => {
    const { session } = open({}, ({ turn, options }) =>
      turn === 0 ? `<think>thought ${options.seed}</think>yes` : "and so on",
    );
    const siblings = [];
    for (let i = 0; i < 3; i++) siblings.push(await session.complete(ask("a")));
    expect(new Set(siblings.map(({ message }) => message.reasoning_content)).size).toBe(3);
    for (const { message, tokenIds } of siblings) {
      const { promptTokenIds } = await session.complete(ask("b", user("a"), message));
      const prompt = [...promptTokenIds].join();
      expect(prompt).toContain([...tokenIds].join());
    }
    // Without thoughts, as most clients send it, it is one of them.
    await session.complete(ask("c", user("a"), foreign("yes")));
    expect(session.metrics).toMatchObject({ chat_roots: 1, chat_branches: 0 });
  });

  it("other tools make another conversation, in which answers are foreign", async () => {
    const { session } = open();
    const first = await session.complete(ask("a"));
    const second = await session.complete({ ...ask("b", user("a"), first.message), tools: [lookUp] });
    expect(session.metrics).toMatchObject({ chat_roots: 2 });
    expect(second.usage.promptTokens).toBeGreaterThan(first.usage.promptTokens);
  });

  it("a question that is asked again while its first call still ends is answered", async () => {
    let calls = 0;
    const engine = new FakeEngine({ reply: echo, latencyMs: () => (calls++ === 0 ? 60_000 : 0) });
    const createSequence = engine.createSequence.bind(engine);
    engine.createSequence = () => {
      const sequence = createSequence();
      const generate = sequence.generate.bind(sequence);
      // A batch that runs is not stopped in the middle.
      sequence.generate = async (...given) => {
        const result = await generate(...given);
        await sleep(30);
        return result;
      };
      return sequence;
    };
    const { session } = open({ engine });
    const left = new AbortController();
    const first = session.complete(ask("a"), { signal: left.signal }).catch((error: unknown) => String(error));
    while (engine.counts.inFlight === 0) await sleep(1);
    left.abort(new Error("gone"));
    expect(await first).toBe("Error: gone");
    const again = await session.complete(ask("a"));
    expect(again.message.content).toMatch(/^a #/);
    session.dispose();
    expect(engine.counts.created).toBe(engine.counts.disposed);
  });

  it("an equal question gets a sibling; while it is answered, or after it was cut off, the same answer", async () => {
    const left = new AbortController();
    const { session } = open({}, (context) => {
      // In the middle of the first answer to b.
      if (context.text.includes("\nb<|im_end|>") && !left.signal.aborted) left.abort(new Error("gone"));
      return echo(context);
    });
    const again = { separate: false };
    const [one, same] = await Promise.all([session.complete(ask("a")), session.complete(ask("a"), again)]);
    expect(same.node).toBe(one.node);
    const sibling = await session.complete(ask("a"));
    expect(sibling.node).not.toBe(one.node);
    expect(sibling.message.content).not.toBe(one.message.content);
    const choices = await Promise.all([0, 1].map((choice) => session.complete({ ...ask("a"), choice })));
    expect(new Set(choices.map(({ node }) => node)).size).toBe(2);

    const cut = session.complete(ask("b"), { signal: left.signal });
    await expect(cut).rejects.toThrow("gone");
    const retry = await session.complete(ask("b"));
    const other = open();
    const undisturbed = await other.session.complete(ask("b"));
    expect(retry.node).toBe(undisturbed.node);
    expect(retry.message).toEqual(undisturbed.message);
    expect(session.metrics.chat_retries).toBe(2);
  });

  it("equal questions of one program, asked at once, each get an answer of their own: those that they get one by one", async () => {
    const { session } = open({ sampling: { temperature: 1 } });
    const both = await Promise.all([0, 1].map(() => session.complete(ask("a"))));
    const alone = open({ sampling: { temperature: 1 } }).session;
    const first = await alone.complete(ask("a"));
    const second = await alone.complete(ask("a"));
    expect(both.map(({ node }) => node)).toEqual([first.node, second.node]);
    expect(both.map(({ message }) => message)).toEqual([first.message, second.message]);
    expect(both[0]!.message).not.toEqual(both[1]!.message);
    expect(session.metrics).toMatchObject({ chat_calls: 2, chat_siblings: 1, chat_retries: 0 });
  });

  it("a repeated question gets an abandoned answer, not one with waiting callers", async () => {
    const { session } = open({}, echo, 60_000);
    const gone = new AbortController();
    const other = session.complete(ask("a")).catch(() => "ended");
    const leave = session.complete(ask("a"), { signal: gone.signal }).catch(() => "left");
    await vi.waitFor(() => expect(session.metrics.chat_calls).toBe(2));
    gone.abort(new Error("gone"));
    expect(await leave).toBe("left");
    const again = session.complete(ask("a"), { separate: false }).catch(() => "ended");
    await vi.waitFor(() => expect(session.metrics.chat_calls).toBe(3));
    session.dispose();
    expect(await Promise.all([other, again])).toEqual(["ended", "ended"]);
  });

  it("distinguishes concurrent questions by everything beside the messages", async () => {
    const { session } = open({}, () => "one STOP two", 1);
    const asked = [ask("a"), { ...ask("a"), stop: ["STOP"] }, { ...ask("a"), stop: ["two"] }];
    const said = await Promise.all(asked.map((request) => session.complete(request)));
    expect(said.map(({ message }) => message.content)).toEqual(["one STOP two", "one", "one STOP"]);
    expect(session.metrics).toMatchObject({ chat_calls: 3, chat_retries: 0 });
  });

  it("closes a turn that a stop string ended before the next one begins", async () => {
    const { session, engine } = open({}, () => "one STOP two");
    const first = await session.complete({ ...ask("a"), stop: ["STOP"] });
    expect(first).toMatchObject({ finishReason: "stop", stopString: "STOP" });
    const { promptTokenIds } = await session.complete(ask("b", user("a"), first.message));
    const behind = promptTokenIds.slice(first.promptTokenIds.length + first.tokenIds.length);
    expect(engine.detokenize(behind)).toBe("<|im_end|>\n<|im_start|>user\nb<|im_end|>\n<|im_start|>assistant\n");
  });

  it("gives the same answers for any order of the calls", async () => {
    const questions = ["a", "b", "c", "d"];
    const run = async (order: readonly string[]) => {
      const { session } = open();
      const answers = new Map<string, ChatAnswer>();
      await Promise.all(
        order.map(async (question, i) => {
          await sleep(i * 3);
          const first = await session.complete(ask(question));
          answers.set(question, await session.complete(ask("more", user(question), first.message)));
        }),
      );
      const { tokenIds, segments } = layOutGraph(session.graph, {
        credit: "all_branches",
        trainOnConstrained: false,
        trainOnToolCalls: true,
      })!;
      return { said: questions.map((q) => answers.get(q)!.message.content), tokenIds: [...tokenIds], segments };
    };
    const forwards = await run(questions);
    expect(new Set(forwards.said).size).toBe(4);
    expect((await run([...questions].reverse())).said).toEqual(forwards.said);
  });

  it("streams the answer; a late caller receives all of it", async () => {
    const { session } = open({}, () => `I see. ${call("x")}`);
    const heard: ChatEvent[] = [];
    const late: ChatEvent[] = [];
    const request = { ...ask("look up x"), tools: [lookUp] };
    const first = session.complete(request, { onEvent: (event) => heard.push(event) });
    const answer = await session.complete(request, { onEvent: (event) => late.push(event), separate: false });
    await first;
    expect(late).toEqual(heard);
    expect(heard.map(({ type }) => type)).toEqual(["text", "tool_call"]);
    expect(heard[0]).toEqual({ type: "text", text: "I see." });
    expect(heard[1]).toEqual({ type: "tool_call", index: 0, call: answer.message.tool_calls![0] });
  });

  it("samples as the training's settings say, and reports unused settings", async () => {
    const warnings: string[] = [];
    const seen: object[] = [];
    const { session } = open(
      { sampling: { temperature: 1 }, enforceSampling: true, onWarning: (text) => warnings.push(text) },
      ({ options }) => {
        seen.push({ temperature: options.temperature, topK: options.topK });
        return "ok";
      },
    );
    await session.complete({ ...ask("a"), sampling: { temperature: 0.2, topK: 5 } });
    await session.complete({ ...ask("b"), sampling: { temperature: 1 } });
    expect(seen).toEqual([{ temperature: 1 }, { temperature: 1 }]);
    expect(warnings).toEqual([expect.stringContaining("temperature 0.2 (here 1), topK 5 (here 0)")]);
    expect(session.metrics.chat_sampling_overridden).toBe(1);
  });

  it("enforces JSON and calls by a grammar, after thoughts where the template thinks", async () => {
    const grammars: (string | undefined)[] = [];
    const reply = ({ options }: FakeContext) => {
      grammars.push(options.grammar);
      return "{}";
    };
    const { session } = open({}, reply);
    const schema = { type: "object", properties: { root: { type: "integer" } }, required: ["root"] };
    await session.complete(ask("a"));
    await session.complete({ ...ask("b"), responseFormat: { type: "json_schema", schema } });
    await session.complete({ ...ask("c"), responseFormat: { type: "json_object" } });
    await session.complete({ ...ask("d"), tools: [lookUp], toolChoice: "required" });
    await session.complete({ ...ask("e"), tools: [lookUp], toolChoice: { name: "look_up" } });
    expect(grammars[0]).toBeUndefined();
    expect(grammars[1]).toContain("root ::=");
    expect(grammars[2]).toContain("root ::=");
    expect(grammars[3]).toMatch(/<tool_call>[\s\S]*look_up/);
    expect(grammars[4]).toEqual(grammars[3]);

    for (const tag of ["<think>", "<|channel>thought"]) {
      const engine = new FakeEngine({ reply, chatTemplate: `{# ${tag} #}${fakeChatTemplate}` });
      const tokenizer = DeltaTokenizer.forModel(engine);
      const thinker = new ChatSession({ engine, tokenizer, name: "fake", format: "hermes", seed: 7 });
      await thinker.complete({ ...ask("b"), responseFormat: { type: "json_schema", schema } });
    }
    expect(grammars[5]).toContain(
      'root ::= ("<think>" thoughts)? the-answer\nthoughts ::= ([^<] | "<" [^/])* "</think>"',
    );
    expect(grammars[6]).toContain('("<|channel>thought" thoughts)?');
    expect(grammars[6]).toContain('thoughts ::= ([^<] | "<" [^c])* "<channel|>"');
    expect(grammars[5]).toMatch(/^the-answer ::=/m);
    // A property of that name stays.
    expect(grammars[5]).toContain('root\\"');
    const code = (request: ChatRequest) => session.complete(request).catch((error: { code: string }) => error.code);
    const unknown = { type: "object", not: {} };
    expect(await code({ ...ask("f"), responseFormat: { type: "json_schema", schema: unknown } })).toBe(
      "chat/bad-request",
    );
    const mute = open({ format: () => ({ content: "", calls: [] }) }).session;
    await expect(mute.complete({ ...ask("g"), tools: [lookUp], toolChoice: "required" })).rejects.toMatchObject({
      code: "chat/bad-request",
    });
  });

  it("refuses wrong requests, too many calls and too long conversations, each by its code", async () => {
    const { session } = open({ limits: { calls: 1, context: 100 } });
    const code = async (request: ChatRequest) =>
      session.complete(request).then(
        () => "answered",
        (error: { code: string }) => error.code,
      );
    expect(await code({ messages: [] })).toBe("chat/bad-request");
    for (const wrong of [null, undefined, "a", 5, [], { ...ask("a"), tools: null }, { ...ask("a"), stop: "x" }])
      expect(await code(wrong as never)).toBe("chat/bad-request");
    expect(await code({ messages: [{ role: "assistant", content: "x" }] })).toBe("chat/bad-request");
    expect(await code({ messages: [{ role: "user", content: 5 as never }] })).toBe("chat/bad-request");
    expect(await code({ ...ask("a"), toolChoice: { name: "none" } })).toBe("chat/bad-request");
    expect(await code({ ...ask("a"), maxTokens: 0 })).toBe("chat/bad-request");
    expect(await code({ ...ask("a"), sampling: { temperature: Number.NaN } })).toBe("chat/bad-request");
    expect(await code(ask("x".repeat(200)))).toBe("chat/context-length");
    expect(await code(ask("a"))).toBe("answered");
    expect(await code(ask("b"))).toBe("chat/too-many-calls");
    expect(session.refusal?.code).toBe("chat/context-length");
  });

  it("ends by its signal, at any await of a call, and frees what waits", async () => {
    const { session: probe } = open();
    let turns = 0;
    const asked = probe.complete(ask("a")).then(() => true);
    while (!(await Promise.race([asked, new Promise<false>((resolve) => setImmediate(resolve, false))]))) turns++;
    for (let wait = 0; wait <= Math.min(turns, 6); wait++) {
      for (const microtasks of [0, 1, 3, 7]) {
        const over = new AbortController();
        const { session, engine } = open({ signal: over.signal }, () => "never", 60_000);
        const waiting = session.complete(ask("a"));
        for (let i = 0; i < wait; i++) await new Promise((resolve) => setImmediate(resolve));
        for (let i = 0; i < microtasks; i++) await null;
        over.abort(new Error("over"));
        await expect(waiting).rejects.toThrow("over");
        await expect(session.complete(ask("b"))).rejects.toThrow("over");
        session.dispose();
        await vi.waitFor(() => expect(engine.counts.inFlight).toBe(0));
        expect(engine.counts.created).toBe(engine.counts.disposed);
      }
    }
  });

  it.each([
    ["an answer", (session: ChatSession) => session.complete(ask("a"))],
    ["a repeated answer", (session: ChatSession) => session.repeat(null, recorded("a"))],
  ])("hears an abort while the conversation of %s is rendered", async (_, call) => {
    const over = new AbortController();
    const { session, engine, tokenizer } = open({ signal: over.signal });
    const encode = tokenizer.encodePromptAside.bind(tokenizer);
    tokenizer.encodePromptAside = async (...given) => {
      over.abort(new Error("over"));
      return encode(...given);
    };
    await expect(call(session)).rejects.toThrow("over");
    expect(engine.counts.requests).toBe(0);
  });

  it("hears its end while the images of a repeated answer are loaded", async () => {
    const { session, engine } = open();
    const repeated = session.repeat(null, recorded("a"));
    session.dispose();
    await expect(repeated).rejects.toMatchObject({ code: "engine/disposed" });
    expect(engine.counts.requests).toBe(0);
    expect(session.graph.roots.size).toBe(0);
  });

  it("counts the tokens of thoughts", async () => {
    const { session, engine } = open({}, ({ text }) => (text.includes("think") ? "<think>Hm.</think>Yes." : "Yes."));
    const thought = await session.complete(ask("think"));
    expect(thought.usage.reasoningTokens).toBe(engine.tokenize("<think>Hm.").length);
    expect(thought.usage.reasoningTokens).toBeLessThan(thought.usage.completionTokens);
    expect((await session.complete(ask("a"))).usage.reasoningTokens).toBe(0);
  });

  it("takes no call once it was aborted, and causes no unhandled rejection", async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => unhandled.push(reason);
    process.on("unhandledRejection", note);
    const { session } = open({}, () => "never", 60_000);
    void session.complete(ask("a"));
    void session.complete(null as never);
    session.abort(new Error("enough"));
    await expect(session.complete(ask("b"))).rejects.toThrow("enough");
    session.dispose();
    await expect(session.complete(ask("c"))).rejects.toMatchObject({ code: "engine/disposed" });
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", note);
    expect(unhandled).toEqual([]);
  });

  it("last_branch teaches the conversation whose answer came last, and nothing else", async () => {
    const { session } = open();
    const first = await session.complete(ask("a"));
    await session.complete(ask("b", user("a"), first.message));
    await session.complete(ask("c", user("a"), first.message));
    const all = layOutGraph(session.graph, {
      credit: "all_branches",
      trainOnConstrained: false,
      trainOnToolCalls: true,
    })!;
    const last = layOutGraph(session.graph, {
      credit: "last_branch",
      trainOnConstrained: false,
      trainOnToolCalls: true,
    })!;
    const count = (mask: Uint8Array) => mask.reduce((sum, bit) => sum + bit, 0);
    expect(last.tokenIds).toEqual(all.tokenIds);
    expect(count(last.responseMask)).toBeLessThan(count(all.responseMask));
    expect(last.messages.at(-2)!.content).toBe("c");
  });
});
