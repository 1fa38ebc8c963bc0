import { describe, expect, it } from "vitest";
import { type AdvantageInputs, advantageEstimators, defineEstimator, type EstimatorState } from "../index.js";

const rae = advantageEstimators.get("rae");

/** Turns of one token each, of the roles that `roles` names, with these rewards; "." is a prompt's token. */
function episode(roles: string, rewards: readonly number[], outcome = 0) {
  const at = [...roles].flatMap((role, t) => (role === "." ? [] : [{ role, t }]));
  const tokens = [...rewards];
  tokens[at.at(-1)!.t]! += outcome;
  return {
    tokens,
    mask: [...roles].map((role) => Number(role !== ".")),
    turns: at.map(({ role, t }, i) => ({
      start: t,
      end: t + 1,
      segment: 0,
      parent: i - 1,
      tools: 0,
      scores: 0,
      ...(role === "?" ? {} : { role }),
    })),
    outcome,
  };
}

function join(episodes: readonly ReturnType<typeof episode>[], more: Partial<AdvantageInputs> = {}): AdvantageInputs {
  const offsets = [0];
  for (const { tokens } of episodes) offsets.push(offsets.at(-1)! + tokens.length);
  return {
    tokenLevelRewards: episodes.flatMap(({ tokens }) => tokens),
    responseMask: episodes.flatMap(({ mask }) => mask),
    offsets,
    groups: episodes.map((_, i) => String(i)),
    turns: episodes.map(({ turns }) => turns),
    episodeRewards: episodes.map(({ outcome }) => outcome),
    ...more,
  };
}

const expectClose = (values: ArrayLike<number>, expected: readonly number[]) =>
  expect(Array.from(values, (value) => Number(value.toFixed(6)))).toEqual(expected);

describe("rae", () => {
  it("is the return less the moving average of the role's returns, over three steps", () => {
    const game = episode(".xo.xo", [0, 0, 0, 0, 1, -1]);
    let state: EstimatorState | undefined;
    // b is 0, then 0.05 * 1, then 0.95 * 0.05 + 0.05 * 1.
    for (const [x, baseline] of [
      [1, 0.05],
      [0.95, 0.0975],
      [0.9025, 0.142625],
    ] as const) {
      const { advantages, returns, metrics, state: next }: ReturnType<typeof rae> = rae(join([game], { state }));
      expectClose(advantages, [0, x, -x, 0, x, -x]);
      expectClose(returns, [0, 1, -1, 0, 1, -1]);
      expect(metrics["rae/x/return/mean"]).toBe(1);
      expect(metrics["rae/x/baseline"]).toBeCloseTo(baseline, 12);
      expect(metrics["rae/o/baseline"]).toBeCloseTo(-baseline, 12);
      state = next;
    }
    expect(Object.keys(state!)).toEqual(["x", "o"]);
  });

  it("moves a baseline after each trajectory of a step, in their order", () => {
    const { advantages, state, metrics } = rae(
      join([episode("x", [1]), episode("x", [0]), episode("x", [2])], { baselineDecay: 0.5 }),
    );
    // b: 0, 0.5, 0.25; then 1.125.
    expectClose(advantages, [1, -0.5, 1.75]);
    expect(state).toEqual({ x: 1.125 });
    expect(metrics).toEqual({ "rae/x/return/mean": 1, "rae/x/baseline": 1.125 });
  });

  it("gives the outcome of the episode to each role, beside what each earned", () => {
    const { returns } = rae(join([episode("xoxo", [0.5, 0, 0, 0.25], 2)]));
    expectClose(returns, [2.5, 2.25, 2.5, 2.25]);
  });

  it("has baselines of its own for each data source, and for turns that name no role", () => {
    const games = [episode("x", [1]), episode("x", [3]), episode("?", [5])];
    const { state } = rae(join(games, { dataSources: ["nim", "poker", "nim"], baselineDecay: 0 }));
    expect(state).toEqual({ "nim/x": 1, "poker/x": 3, "nim/policy": 5 });
  });

  it("leaves a role alone whose tokens are not trained on", () => {
    const game = episode("xo", [1, 0]);
    game.mask[1] = 0;
    const { advantages, state } = rae(join([game], { state: { o: 7 } }));
    expectClose(advantages, [1, 0]);
    expect(state).toEqual({ x: expect.closeTo(0.05, 12), o: 7 });
  });

  it("begins with the given state, and does not change it", () => {
    const state = Object.freeze({ x: 0.5 });
    expectClose(rae(join([episode("xo", [1, -1])], { state })).advantages, [0.5, -1]);
    expect(state).toEqual({ x: 0.5 });
  });
});

describe("state of an estimator of one's own", () => {
  const make = (state: unknown) =>
    defineEstimator({
      comparesGroup: false,
      estimate: ({ responseMask, state: before = {} }) => ({
        advantages: new Float32Array(responseMask.length),
        state: (state as EstimatorState) ?? { steps: (before.steps ?? 0) + 1 },
      }),
    });

  it("comes back as its input", () => {
    const own = make(null);
    const first = own(join([episode("x", [1])]));
    expect(own(join([episode("x", [1])], { state: first.state })).state).toEqual({ steps: 2 });
  });

  it.each([[{ a: Number.NaN }], [{ a: "1" }], [3]])("is refused unless it is made of numbers: %j", (state) => {
    expect(() => make(state)(join([episode("x", [1])]))).toThrow(
      expect.objectContaining({ code: "config/bad-estimator" }),
    );
  });
});
