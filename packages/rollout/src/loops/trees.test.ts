import { setTimeout as sleep } from "node:timers/promises";
import type { Trajectory } from "@cria/core";
import type { FakeContext } from "@cria/core/testing";
import { interaction, tool } from "@cria/tools";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { RewardManager } from "../rewards/index.js";
import { type FakeRolloutOptions, makeFakeRollout, makeRow } from "../testing/index.js";
import { agentLoops } from "./agent-loops.js";
import type { RolloutOptions } from "./rollout-options.js";

const tree = { rounds: 1, expansions: 2 };
const call = (name: string, by: number) => `<tool_call>\n{"name": "${name}", "arguments": {"by": ${by}}}\n</tool_call>`;

/** Calls the tool up to four times, with numbers that the seed draws, then ends. */
const counting =
  (name = "count") =>
  ({ turn, options: { seed } }: FakeContext) =>
    turn >= 4 || (turn > 1 && seed! % 5 === 0) ? `the end ${seed! % 997}` : call(name, 1 + (seed! % 7));

interface Counted {
  count: number;
}

/** A tool that adds up, whose state is kept in this way. */
const countWith = (ways: { snapshot: (state: Counted) => Counted; restore: (snapshot: Counted) => Counted }) =>
  tool({
    name: "count",
    description: "Adds up.",
    inputSchema: z.object({ by: z.number() }),
    create: (): Counted => ({ count: 0 }),
    execute: ({ by }, { state }) => {
      state.count += by;
      return `now ${state.count}`;
    },
    ...ways,
  });

/** A tool that adds numbers up, and what it was asked. */
function makeCounter({ restores, delay = () => 0 }: { restores: boolean; delay?: (by: number) => number }) {
  const executed: string[] = [];
  const restored: number[] = [];
  const made = tool({
    name: "count",
    description: "Adds up.",
    inputSchema: z.object({ by: z.number() }),
    create: (): Counted => ({ count: 0 }),
    execute: async ({ by }, { state, agentData, instanceId }) => {
      await sleep(delay(by));
      state.count += by;
      agentData.last = by;
      executed.push(instanceId);
      return { text: `now ${state.count}`, reward: by };
    },
    ...(restores
      ? {
          snapshot: (state: Counted) => ({ ...state }),
          restore: (snapshot: Counted, state: Counted) => {
            restored.push(snapshot.count);
            return Object.assign(state, snapshot);
          },
        }
      : {}),
    reward: (state) => state.count / 100,
  });
  return { tool: made, executed, restored };
}

const roll = (given: Partial<FakeRolloutOptions> & Pick<FakeRolloutOptions, "tools">) =>
  makeFakeRollout({ reply: counting(), n: 6, tree, ...given });

/** Samples and rewards, without times and counters of work. */
const describeBits = ({
  tokenIds,
  responseMask,
  rolloutLogprobs,
  toolRewards,
  rewards,
  sampling,
  branch,
  messages,
}: Trajectory) => ({
  tokens: [...tokenIds],
  mask: [...responseMask],
  logprobs: [...rolloutLogprobs],
  toolRewards,
  toolScore: rewards.toolScore,
  sampling,
  branch,
  messages,
});

/** The sums that the tool said, against those of the calls before. */
function expectRightSums({ messages, toolRewards }: Trajectory) {
  let sum = 0;
  let calls = 0;
  for (const { role, content } of messages) {
    if (role === "assistant") sum += Number(/"by": (\d+)/.exec(String(content))?.[1] ?? 0);
    if (role === "tool") {
      expect(content).toBe(`now ${sum}`);
      calls++;
    }
  }
  expect(calls).toBeGreaterThan(1);
  expect(toolRewards).toHaveLength(calls);
  expect(toolRewards.reduce((total, { value }) => total + value, 0)).toBe(sum);
}

const isBranch = ({ branch }: Trajectory) => branch!.parent !== null;
const turnsOf = ({ timeline }: Trajectory) => timeline!.turns.filter(({ role }) => role === "assistant");

describe("rollouts that grow as trees", () => {
  it.each([true, false])("go on with the parent's tokens and tools (snapshots: %s)", async (restores) => {
    const { tool: counter, executed, restored } = makeCounter({ restores });
    const { run, engine } = roll({ tools: [counter] });
    const all = await run();
    expect(all.map(({ error }) => error)).toEqual(Array(6).fill(undefined));
    expect(all.map(({ sampleIndex, branch }) => [sampleIndex, branch!.tree])).toEqual([
      [0, 0],
      [1, 0],
      [2, 0],
      [3, 1],
      [4, 1],
      [5, 1],
    ]);
    expect(all.map(isBranch)).toEqual([false, true, true, false, true, true]);
    for (const trajectory of all) expectRightSums(trajectory);
    let repeated = 0;
    for (const branch of all.filter(isBranch)) {
      const { parent, tokens, turns } = branch.branch!;
      const from = all[parent!]!;
      expect(turns).toBeGreaterThan(0);
      expect([...branch.tokenIds.subarray(0, tokens)]).toEqual([...from.tokenIds.subarray(0, tokens)]);
      expect([...branch.rolloutLogprobs.subarray(0, tokens)]).toEqual([...from.rolloutLogprobs.subarray(0, tokens)]);
      expect([...branch.responseMask.subarray(0, tokens)]).toEqual([...from.responseMask.subarray(0, tokens)]);
      // The point is the beginning of a turn of both.
      expect([turnsOf(branch)[turns]!.start, turnsOf(from)[turns]!.start]).toEqual([tokens, tokens]);
      expect(branch.tokenIds.join()).not.toBe(from.tokenIds.join());
      expect(branch.sampling!.earlierSeeds).toEqual(Array(turns).fill(from.sampling!.seed));
      expect(branch.rewards.toolScore).toBeGreaterThan(0);
      repeated += turns;
    }
    const calls = all.reduce((sum, { toolRewards }) => sum + toolRewards.length, 0);
    // With snapshots nothing is executed again.
    expect(executed).toHaveLength(restores ? calls - repeated : calls);
    expect(restored).toHaveLength(restores ? 4 : 0);
    expect(new Set(executed).size).toBeLessThanOrEqual(6);
    expect(engine.counts.created).toBe(engine.counts.disposed);
  });

  it("sample what they share once", async () => {
    const { tool: counter } = makeCounter({ restores: true });
    const { run, engine } = roll({ tools: [counter] });
    const all = await run();
    const count = (name: string) => all.reduce((sum, { metrics }) => sum + (metrics[name] ?? 0), 0);
    const own = all.flatMap((t) => turnsOf(t).slice(t.branch!.turns));
    expect(count("decode_tokens")).toBe(own.reduce((sum, { start, end }) => sum + end - start, 0));
    expect(count("prefill_tokens")).toBe(engine.counts.prefillTokens);
    expect(engine.counts.requests).toBe(1 + own.length);
  });

  it("are the same whatever ends first, with any number of slots", async () => {
    const rows = [makeRow({}, 0), makeRow({}, 1), makeRow({}, 2)];
    const hold = async (given: { delay?: (by: number) => number; concurrency?: number; restores?: boolean }) => {
      const { tool: counter } = makeCounter({ restores: given.restores ?? true, delay: given.delay });
      const options = given.concurrency === undefined ? {} : { concurrency: given.concurrency };
      const { run } = roll({ tools: [counter], tree: { rounds: 2, expansions: 2 }, n: 10, ...options });
      return (await run(rows)).map(describeBits);
    };
    const first = await hold({});
    expect(new Set(first.map(({ tokens }) => tokens.join())).size).toBeGreaterThan(25);
    expect(first.some(({ branch }) => branch!.turns > 2)).toBe(true);
    expect(await hold({ delay: (by) => (by * 7) % 5 })).toEqual(first);
    expect(await hold({ concurrency: 1 })).toEqual(first);
    expect(await hold({ concurrency: 4, delay: (by) => 6 - by, restores: false })).toEqual(first);
  });

  it("go on from the turns of earlier rounds, with the seeds of all turns", async () => {
    const { tool: counter } = makeCounter({ restores: false });
    const { run } = roll({ tools: [counter], tree: { rounds: 3, expansions: 2 }, n: 14 });
    const all = await run([makeRow({}, 0), makeRow({}, 1)]);
    for (const trajectory of all) expectRightSums(trajectory);
    const deep = all.filter(({ sampling }) => new Set(sampling!.earlierSeeds).size > 1);
    expect(deep.length).toBeGreaterThan(0);
    // A conversation is what its seeds say: the same without trees.
    const alone = makeCounter({ restores: false });
    for (const trajectory of deep) {
      const { seed, earlierSeeds } = trajectory.sampling!;
      const { run: again } = makeFakeRollout({
        reply: counting(),
        tools: [alone.tool],
        replay: () => ({ seed, earlierSeeds }),
      });
      const [held] = await again([makeRow({}, trajectory.rowIndex)]);
      expect([...held!.tokenIds]).toEqual([...trajectory.tokenIds]);
    }
  });

  it("draw each turn's end once before any is drawn again", async () => {
    const { tool: counter } = makeCounter({ restores: true });
    const { run } = roll({
      tools: [counter],
      reply: ({ turn }) => (turn >= 4 ? "the end" : call("count", turn + 1)),
      tree: { rounds: 1, expansions: 5 },
    });
    const all = await run([makeRow({}, 0), makeRow({}, 1), makeRow({}, 2)]);
    for (const index of [0, 1, 2]) {
      const drawn = all.filter((t) => t.rowIndex === index && isBranch(t)).map(({ branch }) => branch!.turns);
      expect(new Set(drawn.slice(0, 4))).toEqual(new Set([1, 2, 3, 4]));
    }
    const orders = [0, 1, 2].map((index) =>
      all
        .filter((t) => t.rowIndex === index)
        .map((t) => t.branch!.turns)
        .join(),
    );
    expect(new Set(orders).size).toBeGreaterThan(1);
  });

  it("begin at the prompt where no conversation of the tree went on", async () => {
    const { tool: counter } = makeCounter({ restores: true });
    const { run, engine } = roll({ tools: [counter], reply: ({ options: { seed } }) => `done ${seed! % 97}` });
    const all = await run();
    expect(all.map(({ branch }) => branch)).toEqual(
      [0, 0, 0, 1, 1, 1].map((which) => ({ tree: which, parent: null, turns: 0, tokens: 0 })),
    );
    expect(new Set(all.map(({ tokenIds }) => tokenIds.join())).size).toBeGreaterThan(3);
    expect(engine.counts.prefillTokens).toBe(all[0]!.promptLength);
    expect(engine.counts.created).toBe(engine.counts.disposed);
  });

  it("take over answers of tools without a state, and repeat a user's replies", async () => {
    let lookedUp = 0;
    let asked = 0;
    const stateless = tool({
      name: "count",
      description: "Says when it was asked.",
      inputSchema: z.object({ by: z.number() }),
      execute: () => `answer ${lookedUp++}`,
    });
    const user = interaction({
      name: "test",
      create: () => ({ heard: 0 }),
      reply: ({ state, seed }) => {
        asked++;
        return { content: `${++state.heard} ${seed % 97}`, shouldTerminate: state.heard > 2 };
      },
    });
    const { run } = roll({
      tools: [stateless],
      interactions: [user],
      reply: ({ turn, options: { seed } }) => (turn === 0 ? call("count", 1) : `said ${seed! % 997}`),
      multiTurn: { interactionProb: 0.9 },
    });
    const all = await run();
    expect(all.map(({ error }) => error)).toEqual(Array(6).fill(undefined));
    expect(lookedUp).toBe(2);
    const replies = all.map(({ messages }) => messages.filter(({ role }) => role === "user").length - 1);
    expect(asked).toBeGreaterThanOrEqual(replies.reduce((a, b) => a + b, 0));
    for (const branch of all.filter(isBranch)) {
      const { parent, tokens } = branch.branch!;
      expect([...branch.tokenIds.subarray(0, tokens)]).toEqual([...all[parent!]!.tokenIds.subarray(0, tokens)]);
    }
  });

  it("share the state that tools keep in agentData", async () => {
    const seen: unknown[] = [];
    const { tool: counter } = makeCounter({ restores: true });
    const look = tool({
      name: "look",
      description: "Looks at the last number.",
      inputSchema: z.object({ by: z.number() }),
      execute: (_, { agentData }) => {
        seen.push(agentData.last);
        return `last ${agentData.last}`;
      },
    });
    const { run } = roll({
      tools: [counter, look],
      reply: ({ turn, options: { seed } }) =>
        turn > 2 ? `end ${seed! % 997}` : call(turn === 0 ? "count" : "look", turn === 0 ? 1 + (seed! % 7) : 0),
    });
    await run();
    expect(seen.length).toBeGreaterThan(4);
    expect(seen.every((value) => typeof value === "number")).toBe(true);
  });
});

describe("a tool that cannot be brought to its state", () => {
  const expectOnlyBranchesFail = (all: readonly Trajectory[], error: RegExp) => {
    expect(all.map((t) => t.error !== undefined)).toEqual(all.map(isBranch));
    for (const { error: found, branch } of all.filter(isBranch)) {
      expect(found).toMatch(error);
      expect(branch).toMatchObject({ turns: expect.any(Number) });
    }
  };

  it("fails the conversations that go on, if it answers otherwise", async () => {
    let clock = 0;
    const random = tool({
      name: "count",
      description: "Never says the same.",
      inputSchema: z.object({ by: z.number() }),
      create: () => ({}),
      execute: () => `at ${clock++}`,
    });
    const { run, engine } = roll({ tools: [random] });
    expectOnlyBranchesFail(await run(), /tool "count" in turn 1.*earlier turn/s);
    expect(engine.counts.created).toBe(engine.counts.disposed);
  });

  it("fails them if restore throws, and the first conversations if snapshot does", async () => {
    const make = (broken: "snapshot" | "restore") =>
      countWith({
        snapshot: (state) => {
          if (broken === "snapshot") throw new Error("no memory");
          return { ...state };
        },
        restore: () => {
          throw new Error("no disk");
        },
      });
    expectOnlyBranchesFail(await roll({ tools: [make("restore")] }).run(), /restore of tool "count".*no disk/s);
    const all = await roll({ tools: [make("snapshot")] }).run();
    expect(all[0]!.error).toMatch(/snapshot of tool "count".*no memory/s);
    // None goes on from a conversation that failed.
    expect(all.every((t) => !isBranch(t))).toBe(true);
  });

  it("is sampled again from the same point with on_failure refill", async () => {
    let failures = 0;
    const flaky = countWith({
      snapshot: (state) => ({ ...state }),
      restore: (snapshot) => {
        if (failures++ === 0) throw new Error("not yet");
        return { ...snapshot };
      },
    });
    const { run, engine } = roll({ tools: [flaky], onFailure: "refill" });
    const all = await run();
    expect(all.map(({ error }) => error)).toEqual(Array(6).fill(undefined));
    expect(all.reduce((sum, t) => sum + (t.metrics.refilled ?? 0), 0)).toBe(1);
    const again = all.find((t) => t.metrics.refilled)!;
    const { parent, tokens } = again.branch!;
    expect([...again.tokenIds.subarray(0, tokens)]).toEqual([...all[parent!]!.tokenIds.subarray(0, tokens)]);
    expect(engine.counts.created).toBe(engine.counts.disposed);
  });
});

describe("trees are refused", () => {
  const refuse = (given: Partial<FakeRolloutOptions>, row: Record<string, unknown> = {}) =>
    roll({ tools: [], ...given }).run([{ ...makeRow(), ...row }]);
  const bad = (received: RegExp) =>
    expect.objectContaining({ code: "config/bad-value", received: expect.stringMatching(received) });

  it("with what cannot go on from a turn's end", async () => {
    const converse: RolloutOptions["converse"] = (_, here) => here();
    await expect(refuse({ converse })).rejects.toEqual(bad(/other processes/));
    await expect(refuse({ choose: () => null })).rejects.toEqual(bad(/several policies/));
    await expect(refuse({ multiTurn: { useInferenceChatTemplate: true } })).rejects.toEqual(bad(/true/));
    const loops = agentLoops.extend();
    loops.register("mine", {
      factory: () => ({ run: () => Promise.reject(new Error()) }),
      traits: agentLoops.get("tool_agent").traits,
    });
    await expect(refuse({ agentLoops: loops }, { agentName: "mine" })).rejects.toEqual(bad(/mine/));
  });

  it("with refills beside a judge of whole batches, which drop does not hinder", async () => {
    const reward: RewardManager = {
      granularity: "batch",
      judge: async (requests) => requests.map((_, i) => ({ score: i, extra: {} })),
    };
    await expect(refuse({ reward, onFailure: "refill" })).rejects.toEqual(bad(/refill/));
    const { tool: counter } = makeCounter({ restores: true });
    const all = await roll({ tools: [counter], reward }).run();
    expect(all.map(({ reward }) => reward)).toHaveLength(6);
  });

  it("where the samples of a row are no whole trees", async () => {
    await expect(refuse({ n: 4 })).rejects.toMatchObject({
      code: "data/bad-row",
      expected: expect.stringContaining("multiple of 3"),
    });
    await expect(refuse({}, { samples: 5 })).rejects.toMatchObject({ code: "data/bad-row", received: "5" });
    expect(await refuse({ reply: () => "x" }, { samples: 3 })).toHaveLength(3);
  });
});
