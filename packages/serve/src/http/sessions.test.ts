import { afterEach, describe, expect, it } from "vitest";
import { type OpenFakeOptions, openFake } from "../testing/open-fake.js";

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function open(options: OpenFakeOptions = {}) {
  const fake = await openFake(options);
  closers.push(() => fake.server.close());
  const get = async (path: string) => {
    const response = await fetch(fake.url + path);
    // biome-ignore lint/suspicious/noExplicitAny: what tests look at in it is what they test.
    return { status: response.status, body: (await response.json()) as any };
  };
  return { ...fake, get };
}

const ask = (content: string) => ({ messages: [{ role: "user", content }] });

describe("sessions", () => {
  it("are named by path, by header or by key, and record their conversations", async () => {
    const { post, get } = await open();
    const made = await post("/sessions", { id: "run-1", seed: 4, metadata: { row: 7 } });
    expect([made.status, made.body]).toMatchObject([
      201,
      { id: "run-1", base_path: "/sessions/run-1/v1", metadata: { row: 7 } },
    ]);
    const first = (await post("/sessions/run-1/v1/chat/completions", { ...ask("a"), return_token_ids: true })).body;
    await post("/v1/chat/completions", ask("b"), { "x-session-id": "run-1" });
    await post("/v1/messages", { ...ask("c"), max_tokens: 100 }, { "x-api-key": "any:run-1" });
    await post("/v1/chat/completions", ask("d"), { authorization: "Bearer sk-1:run-1" });
    await post("/v1/chat/completions", ask("e"));
    const { body } = await get("/sessions/run-1/trajectory");
    const answers = body.nodes.filter(({ kind }: { kind: string }) => kind === "answer");
    expect(answers).toHaveLength(4);
    expect(body.nodes[0]).toMatchObject({ parent: null, messages: [{ role: "user", content: "a" }], mask: 0 });
    expect(answers[0]).toMatchObject({ id: first.cria.node, parent: body.nodes[0].id, mask: 1, policy_version: 0 });
    expect(answers[0].token_ids).toEqual(first.choices[0].token_ids);
    expect(body.nodes[0].token_ids).toEqual(first.prompt_token_ids);
    expect(answers[0].logprobs).toHaveLength(answers[0].token_ids.length);
  });

  it("of the same seed and id give the same answers, in any order", async () => {
    const texts = [];
    for (const order of [
      ["a", "b"],
      ["b", "a"],
    ]) {
      const { post } = await open();
      const said: Record<string, string> = {};
      for (const word of order)
        said[word] = (await post("/sessions/s/v1/chat/completions", ask(word))).body.choices[0].message.content;
      texts.push(said);
    }
    expect(texts[0]).toEqual(texts[1]);
  });

  it("are rewarded: a number, for a node, a text", async () => {
    const { post, get } = await open();
    const { node } = (await post("/sessions/s/v1/chat/completions", ask("a"))).body.cria;
    expect((await post("/sessions/s/reward", { reward: 0.5 })).status).toBe(200);
    expect((await post("/sessions/s/reward", { reward: 1, node, text: "well said" })).status).toBe(200);
    expect((await post("/sessions/s/reward", { text: "hm" })).status).toBe(200);
    const { body } = await get("/sessions/s/trajectory");
    expect(body).toMatchObject({ outcome: 0.5, node_rewards: [{ node, value: 1 }] });
    expect(body.rewards).toEqual([
      { reward: 0.5, node: null, text: null },
      { reward: 1, node, text: "well said" },
      { reward: null, node: null, text: "hm" },
    ]);
    for (const wrong of [{}, { reward: "1" }, { reward: 1, node: "nope" }, { reward: null }, []])
      expect((await post("/sessions/s/reward", wrong)).status, JSON.stringify(wrong)).toBe(400);
    expect((await post("/sessions/unknown/reward", { reward: 1 })).status).toBe(404);
    expect((await get("/sessions/s/trajectory")).body.rewards).toHaveLength(3);
  });

  it("record the role that the model plays, in every protocol, and rewards by role", async () => {
    const { post, get } = await open();
    const cria = { role: "x" };
    const said = [];
    for (const [path, body] of [
      ["chat/completions", { ...ask("a"), cria }],
      ["chat/completions", { ...ask("a"), cria: { role: "o" } }],
      ["messages", { ...ask("b"), max_tokens: 9, cria }],
      ["responses", { input: "c", cria }],
    ] as const)
      said.push((await post(`/sessions/s/v1/${path}`, body)).body.cria.node);
    expect(new Set(said).size).toBe(4);
    expect((await post("/sessions/s/v1/chat/completions", { ...ask("a"), cria: { role: "no name" } })).status).toBe(
      400,
    );
    expect((await post("/sessions/s/reward", { rewards: { x: 1, o: -1 } })).status).toBe(200);
    expect((await post("/sessions/s/reward", { rewards: { "no name": 1 } })).status).toBe(400);
    const { body } = await get("/sessions/s/trajectory");
    expect(body.role_rewards).toEqual({ x: 1, o: -1 });
    const roles = body.nodes.flatMap(({ role }: { role?: string }) => role ?? []);
    expect(roles.sort()).toEqual(["o", "x", "x", "x"]);
  });

  it("end once: running calls are aborted, and nothing more is taken", async () => {
    const { post, get, engine } = await open({ engine: { latencyMs: 60_000 } });
    const running = post("/sessions/s/v1/chat/completions", ask("a"));
    while (engine.counts.inFlight === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    expect((await post("/sessions/s/end", {})).body).toMatchObject({ id: "s", ended: true });
    expect((await running).status).toBe(410);
    expect((await post("/sessions/s/v1/chat/completions", ask("b"))).status).toBe(410);
    expect((await get("/sessions/s/trajectory")).status).toBe(410);
    expect((await post("/sessions", { id: "s" })).status).toBe(409);
    expect(engine.counts).toMatchObject({ created: 1, disposed: 1, inFlight: 0 });
  });

  it("must be made first if the server says so, and have valid names", async () => {
    const { post } = await open({ implicitSessions: false });
    expect((await post("/sessions/s/v1/chat/completions", ask("a"))).status).toBe(404);
    expect((await post("/sessions", { id: "s" })).status).toBe(201);
    expect((await post("/sessions/s/v1/chat/completions", ask("a"))).status).toBe(200);
    for (const id of ["", "a/b", "../x", "x".repeat(129), "__proto__ "])
      expect((await post("/sessions", { id })).status, id).toBe(400);
    expect((await post("/sessions", "")).body.id).toMatch(/^[0-9a-f-]{36}$/);
  });

  it("make room for new ones when they are idle; those in use do not", async () => {
    const { post, engine, server } = await open({
      limits: { sessions: 2 },
      engine: { latencyMs: ({ text }) => (text.includes("slow") ? 60_000 : 0) },
    });
    await post("/sessions/a/v1/chat/completions", ask("x"));
    await post("/sessions/b/v1/chat/completions", ask("x"));
    await post("/sessions/c/v1/chat/completions", ask("x"));
    expect(server.endpoint.sessions.size).toBe(2);
    expect((await post("/sessions/a/v1/chat/completions", ask("x"))).status).toBe(410);
    const slow = ["b", "c"].map((id) => post(`/sessions/${id}/v1/chat/completions`, ask("slow")));
    while (engine.counts.inFlight < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    const { status, headers } = await post("/sessions/d/v1/chat/completions", ask("x"));
    expect([status, headers.get("retry-after")]).toEqual([429, "1"]);
    for (const id of ["b", "c"]) await post(`/sessions/${id}/end`, {});
    await Promise.all(slow);
    expect(engine.counts.disposed).toBe(engine.counts.created);
  });
});

describe("conversations without a session", () => {
  it("are recognized by their beginning, and those that were idle for longest are forgotten", async () => {
    const { post, engine } = await open({ limits: { anonymousTokens: 120 } });
    const first = (await post("/v1/chat/completions", ask("a"))).body;
    const message = first.choices[0].message;
    const more = { messages: [...ask("a").messages, message, ...ask("b").messages] };
    const second = (await post("/v1/chat/completions", more)).body;
    expect(second.cria.session).toBe(first.cria.session);
    expect(second.cria.reused_tokens).toBeGreaterThan(0);
    const other = (await post("/v1/chat/completions", ask("c"))).body;
    expect(other.cria.session).not.toBe(first.cria.session);
    for (let i = 0; i < 20; i++) await post("/v1/chat/completions", ask(`more ${i}`));
    expect(engine.counts.created - engine.counts.disposed).toBeLessThan(4);
    // A forgotten conversation is then one like any other.
    expect((await post("/v1/chat/completions", more)).status).toBe(200);
  });
});
