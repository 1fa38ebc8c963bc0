import { type FakeContext, FakeEngine, type FakeEngineOptions, type FakeReply } from "@cria/core/testing";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { type Listening, type ListenOptions, listen } from "../http/listen.js";
import { type ServeEngineOptions, serveEngine } from "../model/serve-engine.js";
import type { ServedModel } from "../model/served-model.js";

/** Echoes the last message with the answer's seed; "look up X" calls the tool of that name. */
export function echo({ text, options }: FakeContext): FakeReply {
  const last = text.split("<|im_start|>").at(-2) ?? "";
  const word = /look up (\w+)/.exec(last)?.[1];
  if (word) return `Wait\n<tool_call>\n{"name": "look_up", "arguments": {"word": "${word}"}}\n</tool_call>`;
  const [, ...lines] = last.split("\n");
  return `${lines
    .join(" ")
    .replace(/<\|im_end\|>\s*$/, "")
    .trim()} #${options.seed}`;
}

export interface OpenFakeOptions extends Partial<Omit<ListenOptions, "model">> {
  engine?: Partial<FakeEngineOptions>;
  served?: Partial<ServeEngineOptions>;
}

export interface Posted {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: what tests look at in it is what they test.
  body: any;
}

export interface OpenedFake {
  server: Listening;
  engine: FakeEngine;
  model: ServedModel;
  url: string;
  /** Posts JSON and reads JSON. */
  post: (path: string, body: unknown, headers?: Record<string, string>) => Promise<Posted>;
}

/** A server of a scripted model. */
export async function openFake({
  engine: engineOptions,
  served,
  ...options
}: OpenFakeOptions = {}): Promise<OpenedFake> {
  const engine = new FakeEngine({ reply: echo, ...engineOptions });
  const tokenizer = DeltaTokenizer.forModel(engine);
  const model = serveEngine({
    engine,
    tokenizer,
    name: "fake",
    fingerprint: "fp-fake",
    format: "hermes",
    countInUse: () => ({ sequences: engine.counts.created - engine.counts.disposed, requests: engine.counts.inFlight }),
    ...served,
  });
  const server = await listen({ model, ...options });
  return { server, engine, model, url: server.url, post: makePost(server) };
}

function makePost({ url }: Listening): OpenedFake["post"] {
  return async (path, body, headers = {}) => {
    const response = await fetch(url + path, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
    return { status: response.status, headers: response.headers, body: await response.json() };
  };
}

/** The data of each event of a stream; JSON is parsed. */
// biome-ignore lint/suspicious/noExplicitAny: what tests look at in it is what they test.
export function readEvents(text: string): any[] {
  return text
    .split("\n\n")
    .filter((block) => block.includes("data: "))
    .map((block) => block.slice(block.indexOf("data: ") + 6))
    .map((data) => (data === "[DONE]" ? data : JSON.parse(data)));
}
