import { describe, expect, it } from "vitest";
import { creditMultiTrajectories } from "../advantages/index.js";
import { type AdvantageOutputs, advantageEstimators } from "../index.js";
import { equalRows, expectClose, expectNear } from "../stored-values/stored-values.js";
import { type AdvantageCase, verlValues } from "./verl-values.js";

/** Estimators that verl has no value for, each with its reason. */
const notInVerl: Record<string, string> = {
  gigpo: "verl-agent's; advantages/turn-credit.test.ts has values of others",
  mt_grpo: "of its paper's trainer; advantages/turn-credit.test.ts computes the paper's two turns",
  rae: "of SPIRAL's trainer; advantages/rae.test.ts has values by hand",
  raft: "of RAFT's trainer; advantages/advantages.test.ts has values by hand",
  tree_grpo: "of Tree-GRPO's trainer; advantages/tree-grpo.test.ts has values by hand",
  vine: "of VinePPO's trainer; advantages/vine.test.ts has values by hand",
  max_rl: "prime-rl's; advantages/advantages.test.ts has values by hand",
};

/** verl computes these in float32, whatever its inputs are. */
const inFloat32 = ["grpo_vectorized", "gdpo"];

function estimate(c: AdvantageCase, name = c.name): AdvantageOutputs {
  return advantageEstimators.get(name)({
    // Values on masked tokens must not matter.
    tokenLevelRewards: c.rewards.map((reward, t) => (c.mask[t] ? reward : 7.5)),
    responseMask: c.mask,
    offsets: equalRows(c.mask.length, c.width),
    groups: c.groups,
    values: c.values,
    baselines: c.baselines,
    rewardParts: c.parts,
    oldLogprobs: c.old_logprobs,
    sumPiSquared: c.sum_pi_squared,
    rolloutIsWeights: c.is_weights ?? undefined,
    gamma: c.gamma,
    lam: c.lam,
    normalizeByStd: c.by_std,
  });
}

/** verl's rloo_vectorized gives groups of one 0; here, and in verl's rloo, they keep their reward. */
function removeAlone(c: AdvantageCase, { advantages, returns }: AdvantageOutputs): void {
  const alone = c.groups.map((group) => c.groups.filter((other) => other === group).length === 1);
  expect(alone).toContain(true);
  for (let t = 0; t < c.mask.length; t++) {
    const i = Math.floor(t / c.width);
    if (!alone[i] || !c.mask[t]) continue;
    const reward = c.rewards.slice(i * c.width, (i + 1) * c.width).reduce((a, b) => a + b, 0);
    expectNear(advantages[t]!, reward, "reward");
    advantages[t] = 0;
    returns[t] = 0;
  }
}

const isHoles = (c: AdvantageCase) => c.variant === "holes";

describe(`advantages by verl ${verlValues.verl}`, () => {
  it("are there for every estimator", () => {
    const compared = verlValues.advantages.filter((c) => !isHoles(c)).map((c) => c.name);
    expect([...new Set([...compared, ...Object.keys(notInVerl)])].sort()).toEqual(advantageEstimators.names());
    expect(verlValues.estimators).toEqual([...new Set(compared)].sort());
  });

  it.each(verlValues.advantages.filter((c) => !isHoles(c)))("$name, $kind $variant", (c) => {
    const outputs = estimate(c);
    if (c.name === "rloo_vectorized") removeAlone(c, outputs);
    const tolerance = inFloat32.includes(c.name) ? 1e-5 : 1e-6;
    expectClose(outputs.advantages, c.advantages, tolerance);
    expectClose(outputs.returns, c.returns, tolerance);
    if (c.explained === null) expect(outputs.metrics).toEqual({});
    else expectNear(outputs.metrics.vf_explained_var!, c.explained, "explained variance");
  });

  it.each(["one turn", ""])("the token baselines are one estimator, %s", (variant) => {
    for (const c of verlValues.advantages.filter(
      (c) => c.name === "tir_optimal_token_baseline" && c.variant === variant,
    ))
      expect(estimate(c, "optimal_token_baseline")).toEqual(estimate(c));
  });
});

describe(`several trajectories an episode by verl ${verlValues.verl}`, () => {
  it.each(verlValues.multi_trajectories)("are credited by the last one, by_std $by_std", (c) => {
    const episodes = new Map<string, { row: number; output: number }[]>();
    c.keys.forEach(([group, session, output], row) => {
      const name = `${group}_${session}`;
      episodes.set(name, [...(episodes.get(name) ?? []), { row, output }]);
    });
    const cut = (values: readonly number[], row: number) => values.slice(row * c.width, (row + 1) * c.width);
    const lists = [...episodes.values()].map((rows) => rows.sort((a, b) => a.output - b.output));
    const { advantages, returns } = creditMultiTrajectories(
      lists.map((rows) => {
        const values = rows.flatMap(({ row }) => cut(c.rewards, row));
        return {
          uid: c.keys[rows[0]!.row]![0],
          responseMask: Uint8Array.from(rows.flatMap(({ row }) => cut(c.mask, row))),
          segments: rows.map((_, k) => ({ start: k * c.width, end: (k + 1) * c.width, parent: -1, messages: [] })),
          turnScores: values.map((value, tokenIndex) => ({ value, tokenIndex })),
          rewards: { outcome: 0, length: 0, tools: 0, turns: values.reduce((a, b) => a + b, 0) },
        };
      }),
      { normalizeByStd: c.by_std },
    );
    const order = lists.flatMap((rows) => rows.map(({ row }) => row));
    expectClose(
      advantages,
      order.flatMap((row) => cut(c.advantages, row)),
    );
    expectClose(
      returns,
      order.flatMap((row) => cut(c.returns, row)),
    );
  });
});

describe("advantages that differ from verl's on purpose", () => {
  it("optimal_token_baseline: text of tools and users has no place in the count", () => {
    const cases = verlValues.advantages.filter(isHoles);
    expect(cases.map((c) => c.name)).toEqual(["optimal_token_baseline"]);
    const [c] = cases;
    const { advantages, returns } = estimate(c!);
    expectClose(returns, c!.returns);
    // verl compares tokens of the same column: a trajectory without a token there changes the baseline.
    const apart = c!.advantages.filter((value, t) => Math.abs(value - advantages[t]!) > 1e-3);
    expect(apart.length).toBeGreaterThan(5);
  });

  it.each(verlValues.whitened_equals)("$name: equal values give 0, and not rounding that whitening blows up", (c) => {
    expect(c.largest).toBeLessThan(2e-4);
    const { advantages } = advantageEstimators.get(c.name)({
      tokenLevelRewards: Array.from({ length: 35 }, (_, t) => (t % 5 === 4 ? 0.1 : 0)),
      responseMask: new Array(35).fill(1),
      offsets: equalRows(35, 5),
      groups: [..."aaabbbb"],
    });
    expect(new Set(advantages)).toEqual(new Set([0]));
  });
});
