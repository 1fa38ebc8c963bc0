import type { ChatMessage } from "@cria/core";
import { FakeEngine } from "@cria/core/testing";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { describe, expect, it } from "vitest";
import { ChatPool } from "./chat-pool.js";

const user = (content: string): ChatMessage => ({ role: "user", content });

function open(mostTokens?: number) {
  const engine = new FakeEngine({ reply: ({ options }) => `said ${options.seed}`, latencyMs: 1 });
  const tokenizer = DeltaTokenizer.forModel(engine);
  return { engine, pool: new ChatPool({ engine, tokenizer, name: "fake", format: "hermes", seed: 7, mostTokens }) };
}

describe("ChatPool", () => {
  it("continues a conversation with its tokens; another beginning is another session", async () => {
    const { pool, engine } = open();
    const first = await pool.complete({ messages: [user("a")] });
    const second = await pool.complete({ messages: [user("a"), first.message, user("more")] });
    const other = await pool.complete({ messages: [user("b")] });
    const whole = [...first.promptTokenIds, ...first.tokenIds];
    expect([...second.promptTokenIds.slice(0, whole.length)]).toEqual(whole);
    expect(second.session).toBe(first.session);
    expect(other.session).not.toBe(first.session);
    expect(pool.size).toBe(2);
    pool.dispose();
    expect(engine.counts.created).toBe(engine.counts.disposed);
  });

  it("gives the same answer in the same place, beside any other calls", async () => {
    const said = async (questions: string[]) => {
      const { pool } = open();
      const answers = await Promise.all(questions.map((question) => pool.complete({ messages: [user(question)] })));
      pool.dispose();
      return new Map(questions.map((question, i) => [question, answers[i]!.message.content]));
    };
    const all = await said(["a", "b", "c"]);
    const some = await said(["c", "a"]);
    for (const question of ["a", "c"]) expect(some.get(question)).toBe(all.get(question));
    expect(all.get("a")).not.toBe(all.get("b"));
  });

  it("forgets the session that was idle for longest, and never a running one", async () => {
    const { pool, engine } = open(1);
    const kept = pool.complete({ messages: [user("runs")] });
    await pool.complete({ messages: [user("a")] });
    await Promise.all([kept, pool.complete({ messages: [user("b")] })]);
    expect(pool.size).toBe(0);
    expect(engine.counts.created).toBe(engine.counts.disposed);
    const roomy = open(100);
    for (const question of ["a", "b", "c", "a"]) await roomy.pool.complete({ messages: [user(question)] });
    const before = roomy.engine.counts.requests;
    expect(roomy.pool.size).toBeLessThan(3);
    expect(roomy.pool.size).toBeGreaterThan(0);
    expect(before).toBe(4);
  });

  it("names the problem of a request", async () => {
    const { pool } = open();
    await expect(pool.complete({ messages: null as never })).rejects.toMatchObject({ code: "chat/bad-request" });
    await expect(pool.complete({ messages: [null as never] })).rejects.toMatchObject({ code: "chat/bad-request" });
  });
});
