import { createHash } from "node:crypto";
import { join } from "node:path";
import { encodePng } from "@cria/core";
import { loadModel } from "@cria/engine";
import { authenticateByKey, type Listening, listen, serveEngine } from "@cria/serve";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { clients } from "./all-clients.js";
import { type Client, type Feature, features } from "./client.js";
import {
  CALLS,
  CONTEXT,
  HELLO,
  KEY,
  LOOK_QUESTION,
  openScripted,
  SAID,
  type ScriptedServer,
  SLOW_QUESTION,
  THOUGHT,
} from "./scripted-server.js";
import { type Place, stamps, weather } from "./topic.js";

/** The endpoint's record of a session. */
interface Record {
  nodes: { id: string; parent: string | null; kind: string; token_ids: number[]; logprobs?: number[] }[];
  metrics: { [name: string]: number };
}

async function readRecord({ url, apiKey }: Place): Promise<Record> {
  const response = await fetch(`${url}/trajectory`, { headers: { authorization: `Bearer ${apiKey}` } });
  return (await response.json()) as Record;
}

const listAnswers = ({ nodes }: Record) => nodes.filter(({ kind }) => kind === "answer");

/** Tokens of all prompts and all answers, as each call sent and got them. */
function countTokens({ nodes }: Record): { input: number; output: number } {
  const place = new Map(nodes.map((node) => [node.id, node]));
  const countBefore = ({ parent }: Record["nodes"][number]): number => {
    const before = parent === null ? undefined : place.get(parent);
    return before ? before.token_ids.length + countBefore(before) : 0;
  };
  const answers = nodes.filter(({ kind }) => kind === "answer");
  return {
    input: answers.reduce((sum, node) => sum + countBefore(node), 0),
    output: answers.reduce((sum, { token_ids }) => sum + token_ids.length, 0),
  };
}

let sessions = 0;
const placeIn = ({ url }: Listening, id = `s${++sessions}`, apiKey = KEY): Place => ({
  url: `${url}/sessions/${id}`,
  apiKey,
  model: "scripted",
});

/** A model that samples, and its server. */
let sampling: Listening;
beforeAll(async () => {
  const path = join(import.meta.dirname, "..", "..", "models", "cria-tiny.gguf");
  const engine = await loadModel({ path, threads: 1, contextSize: 512, maxSequences: 4 });
  const tokenizer = DeltaTokenizer.forModel(engine);
  const model = serveEngine({ engine, tokenizer, name: "scripted", fingerprint: "tiny", format: "hermes" });
  const server = await listen({ model, seed: 3, authenticate: authenticateByKey(KEY) });
  sampling = server;
  return async () => {
    await server.close();
    await engine.dispose();
  };
});

/** A conversation with the embedded policy in a session of that seed. */
async function holdEmbedded(client: Client, seed: number, stream: boolean) {
  const headers = { authorization: `Bearer ${KEY}`, "content-type": "application/json" };
  const made = await fetch(`${sampling.url}/sessions`, { method: "POST", headers, body: JSON.stringify({ seed }) });
  const { id } = (await made.json()) as { id: string };
  const at = placeIn(sampling, id);
  // An error of the client about malformed arguments, say, is an outcome too.
  const heard = await client.talk(at, stamps, stream).catch((error: Error) => error.name);
  const record = await readRecord(at);
  const { chat_calls, chat_roots, chat_branches } = record.metrics;
  const nodes = record.nodes.map(({ token_ids, logprobs }) => [token_ids, logprobs]);
  return { heard, nodes, tokens: countTokens(record), metrics: { chat_calls, chat_roots, chat_branches } };
}

describe.each(clients.map((client) => [client.name, client] as const))("%s", (_, client) => {
  let scripted: ScriptedServer;
  beforeAll(async () => {
    scripted = await openScripted();
  });
  afterEach(() => {
    expect(scripted.engine.counts.inFlight).toBe(0);
    expect(scripted.server.endpoint.gate.running).toBe(0);
  });
  afterAll(async () => {
    await scripted.server.close();
    expect(scripted.engine.counts.created).toBe(scripted.engine.counts.disposed);
  });

  const tried = new Set<Feature>();
  /** A cell of the table; one that the client cannot have says why. */
  const cell = (feature: Feature, title: string, run: () => Promise<void>) => {
    tried.add(feature);
    const reason = client.lacks[feature as keyof Client["lacks"]];
    if (reason === undefined) it(`${features[feature]}: ${title}`, run);
    else it.skip(`${features[feature]}: ${reason}`);
  };

  const place = (id?: string, apiKey?: string) => placeIn(scripted.server, id, apiKey);
  const talk = async (stream: boolean) => {
    const at = place();
    return { heard: await client.talk(at, weather, stream), record: await readRecord(at) };
  };
  /** Checks that hold for every way of the conversation. */
  const eachWay = async (check: (talked: Awaited<ReturnType<typeof talk>>) => void) => {
    for (const stream of [false, true]) check(await talk(stream));
  };

  const checkConversation = ({ heard, record }: Awaited<ReturnType<typeof talk>>) => {
    expect(heard.text).toBe(SAID);
    expect(heard.calls.flat()).toEqual(CALLS.flat());
    expect(record.metrics).toMatchObject({ chat_calls: 3, chat_roots: 1, chat_branches: 0, chat_siblings: 0 });
    // One path: sampled text was never rendered again.
    expect(record.nodes.map(({ parent }) => parent)).toEqual([null, ...record.nodes.slice(0, -1).map(({ id }) => id)]);
    expect(record.nodes).toHaveLength(6);
  };

  cell("tools", "a conversation goes on with its tokens", async () => checkConversation(await talk(false)));

  cell("streamed", "to the same tokens", async () => {
    const streamed = await talk(true);
    checkConversation(streamed);
    const list = ({ nodes }: Record) => nodes.map(({ token_ids }) => token_ids);
    expect(list(streamed.record)).toEqual(list((await talk(false)).record));
  });

  cell("parallel", "an answer with two calls", () => eachWay(({ heard }) => expect(heard.calls).toEqual(CALLS)));

  cell("usage", "what the record says", () =>
    eachWay(({ heard, record }) => expect(heard.usage).toEqual(countTokens(record))),
  );

  cell("thoughts", "seen, and not needed back", () => eachWay(({ heard }) => expect(heard.thoughts).toBe(THOUGHT)));

  cell("json", "an object as its schema says, by a grammar", async () => {
    scripted.grammars.length = 0;
    expect(await client.json!(place())).toEqual({ city: "Bern", degrees: 21 });
    expect(scripted.grammars).toEqual([expect.stringContaining("degrees")]);
  });

  cell("logprobs", "those of the record", async () => {
    for (const stream of [false, true]) {
      const at = place();
      const heard = await client.logprobs!(at, stream);
      const [answer] = listAnswers(await readRecord(at));
      expect(heard.length).toBeGreaterThan(HELLO.length);
      expect(heard).toEqual(answer!.logprobs);
    }
  });

  cell("images", "is seen, as the file that it is", async () => {
    const at = place();
    const image = encodePng({ width: 32, height: 16, rgb: new Uint8Array(32 * 16 * 3) });
    expect(await client.look(at, image, LOOK_QUESTION)).toBe("1 image");
    const [prompt] = (await readRecord(at)).nodes;
    expect(prompt!.token_ids.filter((id) => id === -1)).toHaveLength(2);
    const hash = createHash("sha256").update(image).digest("hex");
    expect(JSON.stringify(prompt)).toContain(hash);
  });

  cell("continued", "the server knows what was said before", async () => {
    const at = place();
    expect(await client.continued!(at)).toEqual(CALLS[1]);
    expect((await readRecord(at)).metrics).toMatchObject({ chat_calls: 2, chat_roots: 1, chat_branches: 0 });
  });

  cell("counting", "as many tokens as the prompt has", async () => {
    const at = place();
    await client.ask(at, "Hello.", {});
    const [prompt] = (await readRecord(at)).nodes;
    expect(await client.counting!(at, "Hello.")).toBe(prompt!.token_ids.length);
  });

  cell("models", "by name", async () => expect(await client.models!(place())).toEqual(["scripted"]));

  const fail = async (at: Place, question: string, temperature?: number) => {
    const error = await client.ask(at, question, { temperature }).then(
      () => expect.unreachable("an answer"),
      (thrown: unknown) => thrown,
    );
    return client.readFailure(error);
  };

  cell("refused", "the message names the field", async () => {
    const message = expect.stringContaining("temperature");
    expect(await fail(place(), "Hello.", -1)).toEqual({ kind: "wrong request", status: 400, message });
  });

  cell("unauthorized", "the message names the key", async () => {
    const message = expect.stringContaining("API key");
    expect(await fail(place("other", "another key"), "Hello.")).toEqual({ kind: "wrong key", status: 401, message });
  });

  cell("tooLong", "known as such where the client knows that", async () => {
    const { kind, message } = await fail(place(), "x".repeat(CONTEXT));
    expect(kind).toBe("too long");
    expect(message).toContain(`${CONTEXT} tokens`);
  });

  cell("aborted", "what it computed is free", async () => {
    const { engine, server } = scripted;
    const leaving = new AbortController();
    const outcome = client.ask(place(), SLOW_QUESTION, { signal: leaving.signal }).then(
      () => "an answer",
      () => "aborted",
    );
    await expect.poll(() => engine.counts.inFlight).toBe(1);
    leaving.abort();
    expect(await outcome).toBe("aborted");
    await expect.poll(() => engine.counts.inFlight + server.endpoint.gate.running).toBe(0);
  });

  cell("embedded", "conversations with the embedded policy, streamed to the same tokens", async () => {
    let turns = 0;
    for (const seed of [1, 2, 3, 4]) {
      const [whole, streamed] = await Promise.all([false, true].map((stream) => holdEmbedded(client, seed, stream)));
      expect(streamed).toEqual(whole);
      expect(whole!.metrics).toMatchObject({ chat_roots: 1, chat_branches: 0 });
      if (typeof whole!.heard === "object") expect(whole!.heard.usage).toEqual(whole!.tokens);
      turns += whole!.metrics.chat_calls!;
    }
    // It calls tools, not in every conversation.
    expect(turns).toBeGreaterThan(4);
  });

  it("has all cells", () => expect([...tried].sort()).toEqual(Object.keys(features).sort()));
});
