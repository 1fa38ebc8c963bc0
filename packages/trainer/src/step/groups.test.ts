import { advantageEstimators } from "@cria/algorithms";
import type { Trajectory } from "@cria/core";
import { FakeEngine } from "@cria/core/testing";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { describe, expect, it } from "vitest";
import { Policy } from "../policy/policy.js";
import { defineTask } from "../task/task.js";
import { type AdvantageOptions, advantages, cutTokens, estimateAdvantages } from "./advantages.js";
import type { Groups } from "./groups.js";
import { rollOut } from "./roll-out.js";

const LENGTHS = [2, 5, 1, 7, 3, 4, 6, 2];

/** Opens a policy that generates texts of different lengths; rewards depend on the length. */
function openPolicy(): Policy {
  let turn = 0;
  const engine = new FakeEngine({ reply: () => "x".repeat(LENGTHS[turn++ % LENGTHS.length]!), contextSize: 8192 });
  return new Policy({ engine, tokenizer: DeltaTokenizer.forModel(engine), reference: null, seed: 0 });
}

const rows = ["a", "b"].map((question) => ({ question }));
/** Makes a task in which conversations with this text fail. */
const make = (failing = "none") =>
  defineTask({
    rows,
    reward: ({ text }) => {
      if (text === failing) throw new Error("no judge");
      return text.length;
    },
  });

async function roll(failing?: string, n = 4): Promise<Groups> {
  const task = make(failing);
  return rollOut(openPolicy(), task, await task.load(), { n });
}

const failureOf = (work: () => unknown): Promise<unknown> =>
  (async () => work())().then(
    () => null,
    (error: unknown) => error,
  );

describe("advantages", () => {
  const named = {
    grpo: "grpo",
    rloo: "rloo",
    reinforcePlusPlus: "reinforce_plus_plus",
    reinforcePlusPlusBaseline: "reinforce_plus_plus_baseline",
    opo: "opo",
    grpoPassk: "grpo_passk",
    gpg: "gpg",
    gigpo: "gigpo",
    mtGrpo: "mt_grpo",
    maxRl: "max_rl",
    rae: "rae",
    raft: "raft",
    treeGrpo: "tree_grpo",
  } as const;

  it("has every estimator that rewards suffice for, and no other", () => {
    const { of: _, ...functions } = advantages;
    expect(Object.keys(functions).sort()).toEqual(Object.keys(named).sort());
    // Some estimators have a second name.
    const cheap = advantageEstimators.names().map((name) => advantageEstimators.get(name));
    const expected = new Set(cheap.filter(({ needs }) => !needs?.length));
    expect(new Set(Object.values(named).map((name) => advantageEstimators.get(name)))).toEqual(expected);
  });

  it.each(Object.entries(named) as [keyof typeof named, string][])("%s is the estimator %s", async (key, name) => {
    const groups = await roll();
    for (const options of [{}, { normalizeByStd: false, gamma: 0.5, turnWeight: 2 }] satisfies AdvantageOptions[]) {
      const given = advantages[key](groups, options);
      const { trajectories } = groups;
      const expected = estimateAdvantages(advantageEstimators.get(name), trajectories, options);
      expect(given.indices).toEqual([...trajectories.keys()]);
      expect(given.advantages).toEqual(cutTokens(trajectories, expected.advantages));
      expect(given.advantages.some((values) => values.some((value) => value !== 0))).toBe(true);
      expect(advantages.of(name, groups, options)).toEqual(given);
      expect(advantages.of(advantageEstimators.get(name), groups, options)).toEqual(given);
    }
  });

  it("by their definition: reward less the mean of the group, or of its others", async () => {
    const groups = await roll();
    const rewards = LENGTHS.slice(0, 4);
    const firstOf = (values: readonly Float32Array[]) =>
      groups.trajectories.slice(0, 4).map(({ responseMask }, i) => values[i]![responseMask.indexOf(1)]!);
    const mean = rewards.reduce((a, b) => a + b) / 4;
    firstOf(advantages.grpo(groups, { normalizeByStd: false }).advantages).forEach((value, i) => {
      expect(value).toBeCloseTo(rewards[i]! - mean, 5);
    });
    firstOf(advantages.rloo(groups).advantages).forEach((value, i) => {
      expect(value).toBeCloseTo(((rewards[i]! - mean) * 4) / 3, 5);
    });
  });

  it.each(["gae", "remax", "gdpo", "optimal_token_baseline"])("%s, which needs more, is refused", async (name) => {
    const groups = await roll();
    const error = await failureOf(() => advantages.of(name, groups));
    expect(error).toMatchObject({
      code: "config/costly-estimator",
      subject: `advantages: ${name}`,
      received: expect.stringMatching(/^needs: \w+/),
      remedy: expect.stringContaining("train("),
    });
  });

  it("by an unknown name are refused", async () => {
    const groups = await roll();
    expect(() => advantages.of("grop", groups)).toThrow(
      expect.objectContaining({
        code: "config/unknown-name",
        expected: expect.stringContaining("grpo"),
        received: "grop",
      }),
    );
  });

  it("leave out failed conversations, and groups of one if they are compared", async () => {
    const groups = await roll("xxxxx");
    expect(advantages.grpo(groups).indices).toEqual([0, 2, 3, 4, 5, 6, 7]);
    const pairs = await roll("xxxxx", 2);
    expect(pairs.trajectories).toHaveLength(4);
    expect(advantages.grpo(pairs).indices).toEqual([2, 3]);
    expect(advantages.reinforcePlusPlus(pairs).indices).toEqual([0, 2, 3]);
  });
});

describe("groups", () => {
  it("come row by row, with means over conversations that did not fail", async () => {
    const groups = await roll("xxxxx");
    const lengths = (group: readonly Trajectory[]) => group.map(({ messages }) => messages.at(-1)!.content.length);
    expect([...groups].map(lengths)).toEqual([LENGTHS.slice(0, 4), LENGTHS.slice(4)]);
    const left = LENGTHS.filter((length) => length !== 5);
    const mean = left.reduce((a, b) => a + b) / left.length;
    expect(groups.reward).toBeCloseTo(mean, 9);
    expect(groups.success).toBeCloseTo(mean, 9);
  });

  it("become a batch of the conversations with advantages", async () => {
    const groups = await roll("xxxxx");
    const estimated = advantages.grpo(groups);
    const batch = groups.toBatch(estimated);
    expect(batch).toMatchObject({ temperature: 1, responseLength: 512, isScored: false });
    expect(batch.groups).toEqual(estimated.indices.map((i) => groups.trajectories[i]!.uid));
    const [[first] = []] = batch.sequences.values();
    expect(first).toMatchObject({
      tokenIds: groups.trajectories[0]!.tokenIds,
      columns: { advantages: estimated.advantages[0] },
    });
  });

  it("refuse advantages of other groups", async () => {
    const groups = await roll();
    const estimated = advantages.grpo(groups);
    const refused = (changed: Partial<typeof estimated>, details: object) =>
      expect(() => groups.toBatch({ ...estimated, ...changed })).toThrow(
        expect.objectContaining({ code: "data/other-advantages", ...details }),
      );
    refused({ indices: [0] }, { expected: expect.stringMatching(/^1 /), received: "8" });
    refused({ indices: [0, 1, 2, 3, 4, 5, 6, 8] }, { expected: expect.stringMatching(/ 8$/), received: "8" });
    refused(
      { advantages: [...estimated.advantages].reverse() },
      { expected: expect.stringMatching(/^\d+ .* trajectory \d$/), received: expect.stringMatching(/^\d+$/) },
    );
  });
});

describe("rollOut refuses", () => {
  it.each<[title: string, work: (policy: Policy) => unknown, details: object]>([
    ["no rows", (policy) => rollOut(policy, make(), []), { code: "data/bad-rows", subject: "rollOut: rows" }],
    [
      "rows that are not a task's",
      (policy) => rollOut(policy, make(), rows as never),
      { code: "data/bad-rows", subject: "rollOut: rows[0]", received: expect.stringContaining("question") },
    ],
    [
      "a row that comes twice",
      async (policy) => {
        const [row] = await make().load();
        return rollOut(policy, make(), [row!, row!]);
      },
      { code: "data/bad-rows", received: expect.stringContaining("rows[0] and rows[1]") },
    ],
    [
      "no conversations",
      async (policy) => rollOut(policy, make(), await make().load(), { n: 0 }),
      { code: "config/bad-value", subject: "rollOut: n" },
    ],
  ])("%s", async (_, work, details) => {
    expect(await failureOf(() => work(openPolicy()))).toMatchObject(details);
  });

  it("groups when every conversation failed, or the signal aborts", async () => {
    const task = defineTask({
      rows,
      reward: () => {
        throw new Error("no judge");
      },
    });
    const running = rollOut(openPolicy(), task, await task.load(), { n: 2, name: "my rollouts" });
    const error = await failureOf(async () => running);
    expect(error).toMatchObject({
      code: "rollout/all-failed",
      subject: "my rollouts",
      received: expect.stringContaining("no judge"),
    });
    // The promise of trajectories includes those that failed.
    expect((await running.trajectories).map(({ error }) => String(error))).toEqual(
      Array(4).fill(expect.stringContaining("no judge")),
    );
    const reason = new Error("enough");
    const aborted = await failureOf(async () =>
      rollOut(openPolicy(), make(), await make().load(), { signal: AbortSignal.abort(reason) }),
    );
    expect(aborted).toBe(reason);
  });

  it("no environment that a task opened", async () => {
    const task = make();
    const policy = openPolicy();
    const seen: Trajectory[] = [];
    const environment = await task.open(policy);
    const groups = await rollOut(policy, environment, await task.load(), {
      n: 2,
      onTrajectory: (t) => void seen.push(t),
    });
    expect(seen.map(({ uid, sampleIndex }) => `${uid} ${sampleIndex}`).sort()).toEqual(
      groups.trajectories.map(({ uid, sampleIndex }) => `${uid} ${sampleIndex}`).sort(),
    );
    expect(groups.trajectories).toHaveLength(4);
  });
});
