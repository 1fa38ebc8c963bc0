import { FakeEngine, type FakeEngineOptions } from "@cria/core/testing";
import { ChatSession, type ChatSessionOptions } from "@cria/rollout";
import { createFetch } from "@cria/serve";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { ContextOverflowError } from "@langchain/core/errors";
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { createReactAgent } from "@langchain/langgraph/prebuilt";
import { ChatOpenAI, type ChatOpenAIFields } from "@langchain/openai";
import { afterEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";

const double = tool(({ x }) => String(2 * x), {
  name: "double",
  description: "Doubles.",
  schema: z.object({ x: z.number() }),
});
const call = '<tool_call>\n{"name": "double", "arguments": {"x": 4}}\n</tool_call>';
const broken = '<tool_call>\n{"name": "double", "arguments": {"x": }}\n</tool_call>';
const isAnswered = (text: string) => text.includes("<tool_response>");

const opened: { session: ChatSession; engine: FakeEngine }[] = [];
afterEach(() => {
  vi.restoreAllMocks();
  for (const { session, engine } of opened.splice(0)) {
    session.dispose();
    expect(engine.counts.created).toBe(engine.counts.disposed);
  }
});

/** LangChain's client on a session of this process, as an agent in a training has it. */
function open(
  reply: FakeEngineOptions["reply"],
  { latencyMs = 1, ...options }: Partial<ChatSessionOptions> & { latencyMs?: number } = {},
) {
  const engine = new FakeEngine({ reply, latencyMs });
  const tokenizer = DeltaTokenizer.forModel(engine);
  const session = new ChatSession({ engine, tokenizer, name: "policy", format: "hermes", seed: 7, ...options });
  opened.push({ session, engine });
  const configuration = { baseURL: "http://cria/v1", fetch: createFetch(session) };
  const connect = (fields: ChatOpenAIFields = {}) =>
    new ChatOpenAI({ model: "policy", apiKey: "-", configuration, ...fields });
  return { session, engine, connect };
}

describe("LangChain's client on createFetch", () => {
  it("an agent of langgraph, streamed or not, is one conversation, whose tokens are never made again", async () => {
    const { session, connect } = open(({ text }) =>
      isAnswered(text) ? "It is 8." : `<think>\nHm.\n</think>\n\nI look.\n${call}`,
    );
    const agent = createReactAgent({ llm: connect(), tools: [double] });
    const question = { messages: [new HumanMessage("4?")] };
    const { messages } = await agent.invoke(question);
    expect(messages.at(-1)!.text).toBe("It is 8.");
    expect(messages[1]!.additional_kwargs.reasoning_content).toBe("Hm.");
    let said = "";
    for await (const [chunk] of await agent.stream(question, { streamMode: "messages" }))
      if (chunk.type === "ai") said += chunk.text;
    expect(said).toBe("I look.It is 8.");
    expect(session.metrics).toMatchObject({ chat_calls: 4, chat_roots: 1, chat_branches: 0, chat_siblings: 1 });
  });

  it.each([
    ["alone comes back as it was written", broken, 0],
    // The client sends the calls that it could read, or all as they were: the rest of a mixed answer is lost.
    ["beside another one is left out by the client: a branch", `${call}\n${broken}`, 1],
  ])("a call that cannot be read is an invalid call; %s", async (_, said, branches) => {
    // The client advises an upgrade when an answer has only invalid calls.
    vi.spyOn(console, "warn").mockImplementation(() => {});
    const { session, connect } = open(({ text }) => (isAnswered(text) ? "Sorry." : said));
    const model = connect().bindTools([double]);
    const question = new HumanMessage("4?");
    const answer = await model.invoke([question]);
    expect(answer.invalid_tool_calls).toMatchObject([{ name: "double" }]);
    const answers = [...answer.tool_calls!, ...answer.invalid_tool_calls!].map(
      ({ id }) => new ToolMessage({ content: "8", tool_call_id: id! }),
    );
    expect((await model.invoke([question, answer, ...answers])).text).toBe("Sorry.");
    expect(session.metrics).toMatchObject({ chat_calls: 2, chat_roots: 1, chat_branches: branches });
  });

  it("structured output follows a grammar; logprobs are the sampler's", async () => {
    const { connect } = open(({ options }) => (options.grammar === undefined ? "Hello." : '{"answer":5}'));
    const schema = z.object({ answer: z.number() });
    const form = connect().withStructuredOutput(schema, { method: "jsonSchema" });
    expect(await form.invoke("2+3?")).toEqual({ answer: 5 });
    const { response_metadata } = await connect({ logprobs: true }).invoke("Hi");
    const logprob = expect.any(Number);
    expect(response_metadata.logprobs).toMatchObject({
      content: expect.arrayContaining([expect.objectContaining({ logprob })]),
    });
  });

  it("a conversation that is too long is LangChain's overflow", async () => {
    const { session, connect } = open(() => "Hello.", { limits: { context: 5 } });
    const error: unknown = await connect()
      .invoke("too long")
      .catch((thrown) => thrown);
    expect(ContextOverflowError.isInstance(error)).toBe(true);
    expect(session.refusal?.code).toBe("chat/context-length");
  });

  it("an aborted call frees the engine", async () => {
    const { engine, connect } = open(() => "Hello.", { latencyMs: 600_000 });
    const leaving = new AbortController();
    const aborted = expect(connect().invoke("Hi", { signal: leaving.signal })).rejects.toThrow(/abort/i);
    await expect.poll(() => engine.counts.inFlight).toBe(1);
    leaving.abort();
    await aborted;
    await expect.poll(() => engine.counts.inFlight).toBe(0);
  });
});
