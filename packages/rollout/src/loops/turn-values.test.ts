import { type ChatMessage, hasFailed, type Trajectory } from "@cria/core";
import type { FakeContext } from "@cria/core/testing";
import { tool } from "@cria/tools";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { RewardManager, RewardRequest } from "../rewards/index.js";
import { type FakeRolloutOptions, makeFakeRollout, makeRow } from "../testing/index.js";

const call = (by: number) => `<tool_call>\n{"name": "count", "arguments": {"by": ${by}}}\n</tool_call>`;

/** Three calls with numbers that the seed draws, then an end. */
const counting = ({ turn, options: { seed } }: FakeContext) => (turn < 3 ? call(seed! % 10) : "the end");

/** A tool that adds numbers up; the conversation's reward is its sum. */
const makeCounter = () =>
  tool({
    name: "count",
    description: "Adds up.",
    inputSchema: z.object({ by: z.number() }),
    create: () => ({ sum: 0 }),
    execute: ({ by }, { state }) => {
      state.sum += by;
      return String(state.sum);
    },
    snapshot: (state) => ({ ...state }),
    restore: (snapshot) => snapshot,
  });

/** Judges that remember what they saw. */
function makeReward() {
  const judged: number[][] = [];
  const reward: RewardManager = {
    granularity: "sample",
    judge: async (requests: readonly RewardRequest[]) =>
      requests.map(({ extraInfo }) => {
        const messages = extraInfo.messages as ChatMessage[];
        const sums = messages.filter(({ role }) => role === "tool").map(({ content }) => Number(content));
        judged.push(sums);
        return { score: sums.at(-1)!, extra: {} };
      }),
  };
  return { reward, judged };
}

const measure = (given: Partial<FakeRolloutOptions> = {}) => {
  const { reward, judged } = makeReward();
  const rollout = makeFakeRollout({
    reply: counting,
    n: 2,
    tools: [makeCounter()],
    reward,
    turnValues: { continuations: 4, maxTokens: null },
    ...given,
  });
  return { ...rollout, judged };
};
const sumsOf = ({ messages }: Trajectory) =>
  messages.filter(({ role }) => role === "tool").map(({ content }) => Number(content));

describe("values of turns", () => {
  it("are the mean rewards of conversations that go on from their ends, which are no samples", async () => {
    const { run, judged, engine } = measure();
    const all = await run([makeRow({}, 0), makeRow({}, 1)]);
    expect(all).toHaveLength(4);
    expect(judged).toHaveLength(4 + 4 * 3 * 4);
    for (const trajectory of all) {
      const { turnValues, metrics, branch } = trajectory;
      expect(branch).toBeUndefined();
      expect(turnValues).toHaveLength(3);
      expect(metrics.continuations).toBe(12);
      const sums = sumsOf(trajectory);
      turnValues!.forEach((value, k) => {
        // Those that share its sums so far: its own continuations, those of later turns, and itself.
        const alike = judged.filter((other) => other.slice(0, k + 1).join() === sums.slice(0, k + 1).join());
        expect(alike.length).toBeGreaterThanOrEqual(4);
        const rewards = alike.map((other) => other.at(-1)!);
        expect(value).toBeGreaterThanOrEqual(Math.min(...rewards));
        expect(value).toBeLessThanOrEqual(Math.max(...rewards));
      });
      // From the end of the last call nothing more is drawn.
      expect(turnValues![2]).toBe(sums[2]);
    }
    expect(new Set(all.flatMap(({ turnValues }) => turnValues)).size).toBeGreaterThan(6);
    expect(engine.counts.created).toBe(engine.counts.disposed);
    const count = (name: string) => all.reduce((sum, { metrics }) => sum + metrics[name]!, 0);
    expect(count("prefill_tokens")).toBe(engine.counts.prefillTokens);
    // Four turns of each conversation; of each point's continuations the turns behind it.
    expect(engine.counts.requests).toBe(2 + 4 * (4 + 4 * (3 + 2 + 1)));
    const own = all.reduce(
      (sum, { timeline }) =>
        sum +
        timeline!.turns.filter(({ role }) => role === "assistant").reduce((n, { start, end }) => n + end - start, 0),
      0,
    );
    expect(count("decode_tokens")).toBe(own + count("continuation_tokens"));
  });

  it("do not change what is sampled, and do not depend on the order of events", async () => {
    const rows = [makeRow({}, 0), makeRow({}, 1)];
    const first = await measure().run(rows);
    const plain = await measure({ turnValues: null }).run(rows);
    expect(plain.map(({ tokenIds }) => [...tokenIds])).toEqual(first.map(({ tokenIds }) => [...tokenIds]));
    expect(plain.every(({ turnValues }) => turnValues === undefined)).toBe(true);
    const engine = { latencyMs: ({ tokenIds }: FakeContext) => (tokenIds.length * 7) % 5 };
    for (const given of [{ concurrency: 1 }, { concurrency: 3, engine }] as const)
      expect((await measure(given).run(rows)).map(({ turnValues }) => turnValues)).toEqual(
        first.map(({ turnValues }) => turnValues),
      );
  });

  it("are measured with at most so many tokens", async () => {
    const { run } = measure({ turnValues: { continuations: 2, maxTokens: 5 } });
    const all = await run();
    for (const { turnValues, metrics, ...trajectory } of all) {
      expect(metrics.continuation_tokens).toBe(6 * 5);
      // Cut within the next call, whatever it would have been.
      expect(turnValues).toEqual(sumsOf(trajectory as Trajectory));
    }
  });

  it("are null where all continuations failed, and missing in conversations that failed", async () => {
    let judged = 0;
    const reward: RewardManager = {
      granularity: "sample",
      judge: async (requests) =>
        requests.map(() => (judged++ < 1000 ? { error: "no judge", extra: {} } : { score: 0, extra: {} })),
    };
    const all = await measure({ reward }).run();
    expect(all.every(hasFailed)).toBe(true);
    expect(all.map(({ turnValues }) => turnValues)).toEqual(Array(2).fill([null, null, null]));
    const broken = tool({
      name: "count",
      description: "Breaks.",
      inputSchema: z.object({ by: z.number() }),
      create: () => ({}),
      execute: () => "1",
      snapshot: () => {
        throw new Error("no memory");
      },
      restore: () => ({}),
    });
    const [failed] = await measure({ tools: [broken] }).run();
    expect(failed!.error).toMatch(/no memory/);
    expect(failed!.turnValues).toBeUndefined();
  });

  it("are refused beside trees, and with judges of whole batches", async () => {
    const bad = { code: "config/bad-value" };
    await expect(measure({ tree: { rounds: 1, expansions: 1 } }).run()).rejects.toMatchObject(bad);
    const reward: RewardManager = {
      granularity: "batch",
      judge: async (requests) => requests.map(() => ({ score: 0, extra: {} })),
    };
    await expect(measure({ reward }).run()).rejects.toMatchObject(bad);
  });
});
