import { FakeEngine } from "@cria/core/testing";
import { ChatSession, type SessionAddress } from "@cria/rollout";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { afterEach, expect, it } from "vitest";
import { openAgentEndpoint } from "./agent-endpoint.js";

const engine = new FakeEngine({ reply: ({ options }) => `said ${options.seed}` });
const tokenizer = DeltaTokenizer.forModel(engine);
const makeSession = (id: string, seed = 1) =>
  new ChatSession({ engine, tokenizer, name: "fake", id, seed, format: "hermes" });

const open: SessionAddress[] = [];
afterEach(() => {
  for (const { close } of open.splice(0)) close();
});

const endpoint = openAgentEndpoint();
const add = async (session: ChatSession) => {
  const address = await endpoint.add(session);
  open.push(address);
  return address;
};

async function post({ url, apiKey }: { url: string; apiKey: string }, path: string, body: object) {
  const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" };
  const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
  return { status: response.status, body: (await response.json()) as { cria: { node: string } } };
}

const hello = { messages: [{ role: "user", content: "hello" }] };

it("a key opens the session of its episode alone, which records the calls and rewards", async () => {
  const [a, b] = [makeSession("a", 1), makeSession("b", 2)];
  const [ofA, ofB] = await Promise.all([add(a), add(b)]);
  expect(ofA.url).toBe(ofB.url);
  expect(ofA.apiKey).not.toBe(ofB.apiKey);
  const answer = await post(ofA, "/v1/chat/completions", hello);
  expect(answer).toMatchObject({ status: 200, body: { cria: { session: "a" } } });
  expect((await post(ofB, "/sessions/b/v1/messages", { ...hello, max_tokens: 99 })).status).toBe(200);
  expect([a.metrics.chat_calls, b.metrics.chat_calls]).toEqual([1, 1]);
  expect((await post(ofA, "/sessions/a/reward", { reward: 0.25, node: answer.body.cria.node })).status).toBe(200);
  expect((await post(ofA, "/sessions/a/reward", { reward: 2 })).status).toBe(200);
  expect(a.outcome).toBe(2);
  expect(a.rewards).toEqual([{ node: answer.body.cria.node, value: 0.25 }]);
  expect((await post(ofA, "/sessions/b/reward", { reward: 9 })).status).toBe(403);
  expect((await post(ofA, "/sessions", {})).status).toBe(400);
  expect((await post(ofA, "/v1/completions", { prompt: "x" })).status).toBe(400);
  expect((await post({ ...ofA, apiKey: "other" }, "/v1/chat/completions", hello)).status).toBe(401);
  expect(b.outcome).toBeNull();
});

it("a reward may come without a call", async () => {
  const session = makeSession("silent");
  expect((await post(await add(session), "/sessions/silent/reward", { reward: 0 })).status).toBe(200);
  expect(session.outcome).toBe(0);
});

it("an address ends with its episode, the listener with the last one, and another may begin", async () => {
  const [c, d] = [await add(makeSession("c")), await add(makeSession("d"))];
  c.close();
  expect((await post(c, "/v1/chat/completions", hello)).status).toBe(401);
  expect((await post(d, "/v1/chat/completions", hello)).status).toBe(200);
  d.close();
  await expect
    .poll(() => post(d, "/v1/chat/completions", hello).catch((error: Error) => error.message))
    .toContain("fetch failed");
  const again = await add(makeSession("c"));
  expect((await post(again, "/v1/chat/completions", hello)).status).toBe(200);
  expect(engine.counts.inFlight).toBe(0);
});
