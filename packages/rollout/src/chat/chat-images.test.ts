import { type ChatMessage, DataError, encodePng, type ImageSource } from "@cria/core";
import { FakeEngine, type FakeEngineOptions, fakeImageFile } from "@cria/core/testing";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { describe, expect, it } from "vitest";
import { ChatPool } from "./chat-pool.js";
import { ChatSession, type ChatSessionOptions } from "./chat-session.js";

const png = encodePng({ width: 32, height: 16, rgb: new Uint8Array(32 * 16 * 3) });
const data = Buffer.from(png).toString("base64");

function open(engineOptions: Partial<FakeEngineOptions> = {}, more: Partial<ChatSessionOptions> = {}) {
  const engine = new FakeEngine({
    reply: ({ turn }) => `answer ${turn}`,
    images: true,
    contextSize: 512,
    ...engineOptions,
  });
  const options = {
    engine,
    tokenizer: DeltaTokenizer.forModel(engine),
    name: "policy",
    format: "hermes",
    seed: 1,
    ...more,
  };
  return { engine, options, session: new ChatSession(options) };
}

const show = (image: ImageSource, text = "What is it?"): ChatMessage => ({
  role: "user",
  content: [
    { type: "image", image },
    { type: "text", text },
  ],
});

describe("images in a chat", () => {
  it("stand in the prompt as tokens; a conversation that goes on is found by their hashes, in any of their forms", async () => {
    const { engine, session } = open();
    const first = await session.complete({ messages: [show({ bytes: png })] });
    // Two vectors, between the model's marks.
    expect(first.promptTokenIds.filter((id) => id === -1)).toHaveLength(2);
    expect(first.usage.promptTokens).toBe(first.promptTokenIds.length);
    const again: ChatMessage[] = [
      show({ url: `data:image/png;base64,${data}` }),
      first.message,
      { role: "user", content: "And now?" },
    ];
    const second = await session.complete({ messages: again });
    expect(second.usage.reusedTokens).toBeGreaterThanOrEqual(first.promptTokenIds.length);
    expect(session.metrics).toMatchObject({ chat_calls: 2, chat_roots: 1, chat_branches: 0 });
    await session.complete({ messages: [show({ bytes: fakeImageFile(32, 16) })] });
    expect(session.metrics).toMatchObject({ chat_calls: 3, chat_roots: 2 });
    expect(engine.images!.stats().encoded).toBe(2);
    session.dispose();
  });

  it("keep later changes of clients' messages out of the record", async () => {
    const { session } = open();
    const message = show({ bytes: png });
    const asked = session.complete({ messages: [message] });
    (message.content as { text?: string }[])[1]!.text = "changed";
    await asked;
    const [root] = session.graph.roots.values();
    expect(root!.messages).toMatchObject([{ content: [{ type: "image" }, { text: "What is it?" }] }]);
    session.dispose();
  });

  it("are shared by a pool's conversations that begin with the same one", async () => {
    const { options } = open();
    const pool = new ChatPool(options);
    await pool.complete({ messages: [show({ bytes: png })] });
    await pool.complete({ messages: [show({ data, mimeType: "image/png" })] });
    expect(pool.size).toBe(1);
    await pool.complete({ messages: [show({ bytes: fakeImageFile(32, 16) })] });
    expect(pool.size).toBe(2);
    pool.dispose();
  });

  const place = "messages[0].content[0]";
  it.each<[what: string, source: ImageSource, details: object]>([
    [
      "a path",
      { path: "/etc/hostname" },
      { code: "chat/bad-image", subject: place, received: expect.stringContaining("/etc/hostname") },
    ],
    [
      "an address",
      { url: "https://example.org/a.png" },
      { code: "chat/bad-image", subject: place, received: expect.stringContaining("https://example.org/a.png") },
    ],
    ["no image", { data: "AAAA", mimeType: "image/png" }, { code: "chat/bad-image", subject: place }],
    ["damaged", { bytes: fakeImageFile(16, 16, 7) }, { code: "chat/bad-image" }],
    [
      "too large for the context",
      { bytes: fakeImageFile(4096, 4096) },
      {
        code: "chat/context-length",
        expected: expect.stringContaining("512 tokens"),
        received: expect.stringContaining("65538 tokens"),
      },
    ],
  ])("that are %s are the request's error, and leave nothing behind", async (_what, source, details) => {
    const images = { isDamaged: ({ width, height }: { width: number; height: number }) => width === height };
    const { engine, session } = open({ images });
    const refused = await session.complete({ messages: [show(source)] }).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(DataError);
    expect(refused).toMatchObject(details);
    expect(session.graph.roots.size).toBe(0);
    expect(engine.counts.created).toBe(0);
    await session.complete({ messages: [show({ bytes: png })] });
    session.dispose();
  });

  it("that fit, but not beside the texts, are not encoded", async () => {
    const { engine, session } = open();
    const first = await session.complete({ messages: [{ role: "user", content: "Hello" }] });
    const long = show({ bytes: png }, "x".repeat(512));
    for (const before of [[], [{ role: "user" as const, content: "Hello" }, first.message]])
      await expect(session.complete({ messages: [...before, long] })).rejects.toMatchObject({
        code: "chat/context-length",
        expected: expect.stringContaining("512 tokens"),
      });
    expect(engine.images!.stats().encoded).toBe(0);
    session.dispose();
  });

  it("are refused by a model without a projector, and fetched where that is allowed", async () => {
    const { session: blind } = open({ images: undefined });
    await expect(blind.complete({ messages: [show({ bytes: png })] })).rejects.toMatchObject({
      code: "chat/bad-image",
      subject: "messages[0].content[0]",
      remedy: expect.stringContaining("mmproj"),
    });
    const asked: string[] = [];
    const fetch = async (url: string | URL | Request) => {
      asked.push(String(url));
      return new Response(png);
    };
    const { session } = open({}, { images: { fetch } });
    await session.complete({ messages: [show({ url: "https://example.org/a.png" })] });
    expect(asked).toEqual(["https://example.org/a.png"]);
    session.dispose();
  });

  it("are distinguished from parts that are neither text nor image", async () => {
    const { session } = open();
    const ask = (part: unknown) => session.complete({ messages: [{ role: "user", content: [part] as never }] });
    for (const part of [
      null,
      "text",
      { type: "text" },
      { type: "image" },
      { type: "image", image: "AAAA" },
      { type: "video" },
    ])
      await expect(ask(part)).rejects.toMatchObject({ code: "chat/bad-request", subject: "messages[0].content[0]" });
  });
});
