import { encodePng } from "@cria/core";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type OpenedFake, type OpenFakeOptions, openFake } from "../testing/open-fake.js";

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** A model that answers with the number of images it has been shown. */
async function open({ engine, ...options }: OpenFakeOptions = {}) {
  const reply = ({ text }: { text: string }) => `${text.split("<|image_start|>").length - 1} seen`;
  const fake = await openFake({ engine: { reply, images: true, ...engine }, ...options });
  closers.push(async () => {
    await fake.server.close();
    expect(fake.engine.counts.disposed).toBe(fake.engine.counts.created);
  });
  return fake;
}

// biome-ignore lint/suspicious/noExplicitAny: what tests look at in it is what they test.
const get = async (at: string): Promise<any> => (await fetch(at)).json();
const png = (grey: number) => encodePng({ width: 32, height: 16, rgb: new Uint8Array(32 * 16 * 3).fill(grey) });
const base64 = Buffer.from(png(0)).toString("base64");
const url = `data:image/png;base64,${base64}`;
const web = "https://example.org/cat.png";

const chatPart = (address: string) => ({ type: "image_url", image_url: { url: address } });
const responsesPart = (address: string) => ({ type: "input_image", image_url: address });
const block = (data: string) => ({ type: "image", source: { type: "base64", media_type: "image/png", data } });

const chatBody = (part: object) => ({ messages: [{ role: "user", content: [part, { type: "text", text: "What?" }] }] });
const responsesBody = (part: object) => ({
  input: [{ role: "user", content: [part, { type: "input_text", text: "What?" }] }],
});
const messagesBody = (part: object) => ({ max_tokens: 99, ...chatBody(part) });

/** One image in each protocol, and how to read the answer's text and prompt tokens. */
const protocols = [
  {
    path: "/v1/chat/completions",
    body: () => chatBody(chatPart(url)),
    read: (body: OpenAiAnswer) => [body.choices[0]!.message.content, body.usage.prompt_tokens],
  },
  {
    path: "/v1/responses",
    body: () => responsesBody(responsesPart(url)),
    read: (body: ResponsesAnswer) => [body.output[0]!.content[0]!.text, body.usage.input_tokens],
  },
  {
    path: "/v1/messages",
    body: () => messagesBody(block(base64)),
    read: (body: MessagesAnswer) => [body.content[0]!.text, body.usage.input_tokens],
  },
] as const;

interface OpenAiAnswer {
  choices: { message: { content: string } }[];
  usage: { prompt_tokens: number };
}
interface ResponsesAnswer {
  output: { content: { text: string }[] }[];
  usage: { input_tokens: number };
}
interface MessagesAnswer {
  content: { text: string }[];
  usage: { input_tokens: number };
}

it("a WebP is taken in each protocol, whatever type the client names", async () => {
  const { post } = await open();
  // VP8L of 32 x 16 pixels.
  const webp = Buffer.from("5249464612000000574542505650384c050000002f1fc0030000", "hex");
  const data = webp.toString("base64");
  const address = `data:image/webp;base64,${data}`;
  const asked = [
    await post("/v1/chat/completions", chatBody(chatPart(address))),
    await post("/v1/responses", responsesBody(responsesPart(address))),
    await post(
      "/v1/messages",
      messagesBody({ type: "image", source: { type: "base64", media_type: "image/webp", data } }),
    ),
    await post("/v1/messages", messagesBody(block(data))),
  ];
  expect(asked.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
});

describe.each(protocols)("an image at $path", ({ path, body, read }) => {
  it("is seen, and counts as its tokens; in the record they are -1, and the message has its hash", async () => {
    const { post, url: at } = await open();
    const answer = await post(`/sessions/s${path}`, { ...body(), return_token_ids: true });
    expect(answer.status).toBe(200);
    const [text, promptTokens] = read(answer.body as never);
    expect(text).toBe("1 seen");
    const ids: number[] = answer.body.prompt_token_ids;
    expect(promptTokens).toBe(ids.length);
    // Two vectors of 16 x 16 pixels each.
    expect(ids.filter((id) => id === -1)).toHaveLength(2);
    const [prompt] = (await get(`${at}/sessions/s/trajectory`)).nodes;
    expect(prompt.token_ids).toEqual(ids);
    expect(prompt.messages[0].content[0]).toEqual({
      type: "image",
      image: { hash: expect.stringMatching(/^[0-9a-f]{64}$/), width: 32, height: 16, mimeType: "image/png" },
    });
  });

  it("is refused by a model that reads only text, with its place", async () => {
    const { post } = await open({ engine: { images: undefined } });
    const { status, body: refusal } = await post(path, body());
    const place = path === "/v1/responses" ? "input.0.content.0" : "messages.0.content.0";
    expect([status, refusal.error.type]).toEqual([400, "invalid_request_error"]);
    expect(refusal.error.message).toMatch(new RegExp(`${place}: [\\s\\S]*mmproj`));
  });
});

describe("images of requests", () => {
  it("go on: a tool's result shows another, earlier messages are not evaluated again, and a retry gets the same answer", async () => {
    const { post, engine } = await open();
    const messages: object[] = [...chatBody(chatPart(url)).messages];
    const first = await post("/v1/chat/completions", { messages });
    const call = { id: "c1", type: "function", function: { name: "zoom", arguments: "{}" } };
    const again = { ...first.body.choices[0].message, tool_calls: [call] };
    const other = `data:image/png;base64,${Buffer.from(png(9)).toString("base64")}`;
    messages.push(again, { role: "tool", tool_call_id: "c1", content: [chatPart(other)] });
    const second = await post("/v1/chat/completions", { messages });
    expect(second.body.choices[0].message.content).toBe("2 seen");
    const retried = await post("/v1/chat/completions", { messages }, { "x-stainless-retry-count": "1" });
    expect(retried.body.cria.node).toBe(second.body.cria.node);
    expect(engine.images!.stats().encoded).toBe(2);
  });

  it("are counted in the metrics, where the model sees them", async () => {
    const read = async (at: string) =>
      (await (await fetch(`${at}/metrics`)).text()).split("\n").filter((line) => line.startsWith("cria_images_"));
    const seeing = await open();
    const held = {
      held: 1,
      heldBytes: 12,
      memoryLimit: 34,
      encoded: 5,
      encodedAgain: 2,
      encodeSeconds: 0.5,
      reused: 3,
    };
    vi.spyOn(seeing.engine.images!, "stats").mockReturnValue(held);
    const expected = [
      "cria_images_encoded_total 5",
      "cria_images_encoded_again_total 2",
      "cria_images_encode_seconds_total 0.5",
      "cria_images_reused_total 3",
      "cria_images_held 1",
      "cria_images_held_bytes 12",
      "cria_images_memory_limit_bytes 34",
    ];
    // A second reading of the metrics must not add to them.
    for (let i = 0; i < 2; i++) expect(await read(seeing.url)).toEqual(expected);
    expect(await read((await open({ engine: { images: undefined } })).url)).toEqual([]);
  });

  it("are remembered by a response that is continued", async () => {
    const { post } = await open();
    const first = await post("/v1/responses", responsesBody(responsesPart(url)));
    const second = await post("/v1/responses", { input: "And?", previous_response_id: first.body.id });
    expect(second.body.output[0].content[0].text).toBe("1 seen");
    expect(second.body.cria.reused_tokens).toBeGreaterThan(first.body.usage.input_tokens - 2);
  });

  it("count where tokens are counted beforehand", async () => {
    const { post } = await open();
    const body = messagesBody(block(base64));
    const { input_tokens } = (await post("/v1/messages/count_tokens", body)).body;
    expect((await post("/v1/messages", body)).body.usage.input_tokens).toBe(input_tokens);
  });

  it.each([
    ["damaged", chatPart("data:image/png;base64,AAAA"), { code: "chat/bad-image", param: "messages.0.content.0" }],
    ["an address", chatPart(web), { code: "chat/bad-image", param: "messages.0.content.0" }],
    ["too large for the context", chatPart(hugeAddress()), { code: "context_length_exceeded" }],
  ])("that are %s are refused", async (_what, part, error) => {
    const { post } = await open();
    const { status, body } = await post("/v1/chat/completions", chatBody(part));
    expect([status, body.error.type]).toEqual([400, "invalid_request_error"]);
    expect(body.error).toMatchObject(error);
  });

  it("are fetched if the server may, up to a number", async () => {
    const asked: string[] = [];
    const fetchImage = async (address: string | URL | Request) => {
      asked.push(String(address));
      return new Response(png(7));
    };
    const { post } = await open({ fetchImage, limits: { images: 2 } });
    const ask = (...parts: object[]) => post("/v1/chat/completions", { messages: [{ role: "user", content: parts }] });
    expect((await ask(chatPart(web), chatPart(web))).body.choices[0].message.content).toBe("2 seen");
    expect(asked).toEqual([web, web]);
    const { status, body } = await ask(chatPart(url), chatPart(url), chatPart(url));
    expect(status).toBe(400);
    expect(body.error).toMatchObject({ code: "serve/bad-field", param: "messages.0.content.2" });
  });

  it("have no ids that a client could name: another client's image stays private", async () => {
    const { post, engine } = await open();
    await post("/v1/chat/completions", chatBody(chatPart(url)));
    const { vocabSize } = engine.info;
    const { status, body } = await post("/v1/completions", { prompt: [1, vocabSize] });
    expect(status).toBe(400);
    expect(body.error.code).toBe("chat/bad-request");
    expect(body.error.message).toContain(String(vocabSize));
  });

  it("are announced by the model, which takes longer bodies then", async () => {
    const modalities = async ({ url: at }: OpenedFake) =>
      (await get(`${at}/v1/models`)).data[0].architecture.input_modalities;
    const seeing = await open();
    expect(await modalities(seeing)).toEqual(["text", "image"]);
    const blind = await open({ engine: { images: undefined } });
    expect(await modalities(blind)).toEqual(["text"]);
    const long = chatBody({ type: "text", text: "x".repeat(2_100_000) });
    expect((await blind.post("/v1/chat/completions", long)).status).toBe(413);
    // The model refuses its length, the server does not.
    expect((await seeing.post("/v1/chat/completions", long)).status).toBe(400);
  });
});

function hugeAddress(): string {
  const rgb = new Uint8Array(1200 * 1200 * 3);
  return `data:image/png;base64,${Buffer.from(encodePng({ width: 1200, height: 1200, rgb })).toString("base64")}`;
}
