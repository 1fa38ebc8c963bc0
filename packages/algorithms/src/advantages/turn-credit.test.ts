import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type AdvantageInputs, advantageEstimators, estimateGigpo, estimateMtGrpo } from "../internal.js";
import type { EstimatorTurn } from "./advantage-estimator.js";
import { numberHistories } from "./turn-histories.js";

fc.configureGlobal({ seed: Number(process.env.CRIA_SEED ?? 1), numRuns: 100 });

interface Step {
  state?: string;
  reward: number;
}

/** Trajectories of one group: of each turn two sampled tokens, the second with the turn's reward, and a token of others behind them. */
function layOut(episodes: readonly (readonly Step[])[], more: Partial<AdvantageInputs> = {}): AdvantageInputs {
  const offsets = [0];
  for (const steps of episodes) offsets.push(offsets.at(-1)! + 3 * steps.length);
  const steps = episodes.flat();
  return {
    tokenLevelRewards: steps.flatMap(({ reward }) => [0, reward, 0]),
    responseMask: steps.flatMap(() => [1, 1, 0]),
    offsets,
    groups: episodes.map(() => "a"),
    turns: episodes.map((own) =>
      own.map(({ state }, k) => ({
        start: 3 * k,
        end: 3 * k + 2,
        segment: 0,
        parent: k - 1,
        tools: 0,
        scores: 0,
        ...(state === undefined ? {} : { state }),
      })),
    ),
    ...more,
  };
}

/** The advantage of each turn, which all its tokens have. */
function byTurn({ advantages }: { advantages: Float32Array }): number[] {
  const turns: number[] = [];
  for (let t = 0; t < advantages.length; t += 3) {
    expect([advantages[t + 1], advantages[t + 2]]).toEqual([advantages[t], 0]);
    turns.push(advantages[t]!);
  }
  return turns;
}

function expectNear(actual: readonly number[], expected: readonly number[]): void {
  expect(actual).toHaveLength(expected.length);
  actual.forEach((value, i) => {
    expect(value).toBeCloseTo(expected[i]!, 4);
  });
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
const deviation = (values: readonly number[]) =>
  Math.sqrt(values.reduce((sum, value) => sum + (value - mean(values)) ** 2, 0) / (values.length - 1));
const scale = (values: readonly number[], byStd: boolean) => (byStd ? deviation(values) + 1e-6 : 1);

describe("gigpo", () => {
  const at = (state: string, reward: number): Step => ({ state, reward });

  it("values of another implementation: returns 2, 2, 1, 0 give 1.5, 1, -1.5, -1 by the population's deviation", () => {
    const episodes = [
      [at("A", 0), at("B", 2)],
      [at("A", 1), at("C", 0)],
    ];
    const options = { gamma: 1, turnWeight: 0.5, normalizeByStd: true };
    // For two values, the unbiased deviation is larger by the square root of 2.
    const expected = [1.5, 1, -1.5, -1].map((value) => value * Math.SQRT1_2);
    expectNear(byTurn(estimateGigpo(layOut(episodes, options))), expected);
  });

  it("by the mean alone, which is the default: 1.5, 1, -1.5, -1 for distances of 1", () => {
    const episodes = [
      [at("A", 0), at("B", 4)],
      [at("A", 2), at("C", 0)],
    ];
    expect(byTurn(estimateGigpo(layOut(episodes, { turnWeight: 0.5 })))).toEqual([1.5, 1, -1.5, -1]);
    expect(byTurn(estimateGigpo(layOut(episodes)))).toEqual([2, 1, -2, -1]);
    expect(byTurn(estimateGigpo(layOut(episodes, { turnWeight: 0 })))).toEqual([1, 1, -1, -1]);
  });

  it("a later turn's reward counts gamma times: 0 + 4 / 2 equals the other's reward at once", () => {
    const episodes = [
      [at("A", 0), at("B", 4)],
      [at("A", 2), at("C", 0)],
    ];
    expect(byTurn(estimateGigpo(layOut(episodes, { gamma: 0.5 })))).toEqual([1, 1, -1, -1]);
  });

  it("compares a state with its repetitions in an episode, never with those of another group", () => {
    const episodes = [[at("A", 1), at("A", 2)], [at("A", 9)]];
    expect(byTurn(estimateGigpo(layOut(episodes, { groups: ["a", "b"] })))).toEqual([3.5, 2.5, 9]);
  });

  it("is the plain formula, for any states and rewards", () => {
    const step = fc.record({ state: fc.constantFrom("A", "B", "C"), reward: fc.integer({ min: -32, max: 32 }) });
    const group = fc.array(fc.array(step, { minLength: 1, maxLength: 5 }), { minLength: 2, maxLength: 5 });
    fc.assert(
      fc.property(group, fc.constantFrom(0, 0.5, 1), fc.boolean(), (episodes, gamma, normalizeByStd) => {
        const sums = episodes.map((steps) => steps.reduce((sum, { reward }) => sum + reward, 0));
        const flat = episodes.flatMap((steps, i) =>
          steps.map(({ state }, k) => ({
            state,
            episode: (sums[i]! - mean(sums)) / scale(sums, normalizeByStd),
            value: steps.slice(k).reduce((sum, { reward }, later) => sum + gamma ** later * reward, 0),
          })),
        );
        const expected = flat.map(({ state, episode, value }) => {
          const values = flat.filter((other) => other.state === state).map((other) => other.value);
          const own = values.length > 1 ? (value - mean(values)) / scale(values, normalizeByStd) : 0;
          return episode + 0.25 * own;
        });
        const given = estimateGigpo(layOut(episodes, { gamma, normalizeByStd, turnWeight: 0.25 }));
        // Equal values may leave a rounding, and a deviation of that size blows it up.
        fc.pre(new Set(sums).size > 1);
        expectNear(byTurn(given), expected);
      }),
    );
  });

  it("without names turns with equal tokens before them answer one state, and no others", () => {
    const episodes = [
      [{ reward: 0 }, { reward: 4 }, { reward: 0 }],
      [{ reward: 0 }, { reward: 2 }, { reward: 0 }],
    ];
    // Both sample 1 2 first and hear 3; then 4 5 and 4 6.
    const tokenIds = [1, 2, 3, 4, 5, 3, 7, 7, 3, 1, 2, 3, 4, 6, 3, 7, 7, 3];
    const { advantages, metrics } = estimateGigpo(layOut(episodes, { tokenIds }));
    expect(byTurn({ advantages })).toEqual([2, 2, 1, -2, -2, -1]);
    expect(metrics).toEqual({ anchored_turns: 4 / 6 });
    const unknown = estimateGigpo(layOut(episodes));
    expect(byTurn(unknown)).toEqual([1, 1, 1, -1, -1, -1]);
    expect(unknown.metrics).toEqual({ anchored_turns: 0 });
    // A name goes before a history, and is none.
    const named = [[{ state: "0", reward: 1 }], [{ reward: 3 }]];
    expect(byTurn(estimateGigpo(layOut(named, { tokenIds: [1, 1, 1, 1, 1, 1] })))).toEqual([-1, 1]);
  });

  it("along branches a turn is worth the mean of its paths", () => {
    const turn = (start: number, segment: number, parent: number, state: string): EstimatorTurn => ({
      ...{ start, end: start + 1, segment, parent, tools: 0, scores: 0, state },
    });
    const { advantages } = estimateGigpo({
      // One turn and two branches of it, the second with the episode's 3 on its last token; and an episode worth 2.
      tokenLevelRewards: [0, 1, 3, 2],
      responseMask: [1, 1, 1, 1],
      offsets: [0, 3, 4],
      groups: ["a", "a"],
      segments: [
        [
          { start: 0, end: 1, parent: -1 },
          { start: 1, end: 2, parent: 0 },
          { start: 2, end: 3, parent: 0 },
        ],
        null,
      ],
      turns: [[turn(0, 0, -1, "A"), turn(1, 1, 0, "B"), turn(2, 2, 0, "C")], [turn(0, 0, -1, "A")]],
      episodeRewards: [3, 2],
    });
    // R 4 and 2; at A ((1 + 3) + 3) / 2 and 2.
    expect([...advantages]).toEqual([1.75, 1, 1, -1.75]);
  });
});

/** Marks the beginning of a turn in a path's tokens. */
const TURN = -1;

describe("histories of turns", () => {
  const trees = fc.array(
    fc.record({
      pick: fc.nat({ max: 7 }),
      /** Tokens of others, and of a turn or none. */
      parts: fc.array(
        fc.tuple(
          fc.array(fc.nat({ max: 1 }), { maxLength: 2 }),
          fc.array(fc.nat({ max: 1 }), { minLength: 1, maxLength: 2 }),
        ),
        {
          maxLength: 2,
        },
      ),
    }),
    { minLength: 1, maxLength: 5 },
  );

  it("are equal where the same tokens and turns are before them on their path", () => {
    fc.assert(
      fc.property(fc.array(trees, { minLength: 1, maxLength: 3 }), (list) => {
        const tokenIds: number[] = [];
        const offsets = [0];
        const before: string[] = [];
        const segments = list.map((tree) => {
          const first = tokenIds.length;
          const paths: number[][] = [];
          const ends: number[] = [];
          const turns: EstimatorTurn[] = [];
          const own = tree.map(({ pick, parts }, segment) => {
            const parent = (pick % (segment + 1)) - 1;
            const start = tokenIds.length - first;
            const path = [...(paths[parent] ?? [])];
            let last = ends[parent] ?? -1;
            for (const [others, said] of parts) {
              path.push(...others);
              tokenIds.push(...others);
              before.push(path.join());
              const begin = tokenIds.length - first;
              turns.push({ start: begin, end: begin + said.length, segment, parent: last, tools: 0, scores: 0 });
              last = turns.length - 1;
              path.push(TURN, ...said);
              tokenIds.push(...said);
            }
            paths.push(path);
            ends.push(last);
            return { start, end: tokenIds.length - first, parent };
          });
          offsets.push(tokenIds.length);
          return { own, turns };
        });
        const inputs = { tokenIds, offsets, segments: segments.map(({ own }) => own) };
        const numbers = numberHistories(
          inputs,
          segments.map(({ turns }) => turns),
        )!.flat();
        expect(numbers).toHaveLength(before.length);
        numbers.forEach((number, a) => {
          numbers.forEach((other, b) => {
            expect(number === other).toBe(before[a] === before[b]);
          });
        });
      }),
    );
  });
});

describe("mt_grpo", () => {
  const outcomes = [1, 0, 1, 0];
  const calls = [0.5, 0.5, 0, 0.25];
  const two = (options: Partial<AdvantageInputs> = {}) =>
    layOut(
      calls.map((call, i) => [{ reward: call }, { reward: outcomes[i]! }]),
      { episodeRewards: outcomes, ...options },
    );

  it.each([true, false])("a call and an answer, as in the paper (by deviation: %s)", (normalizeByStd) => {
    const apart = (values: readonly number[]) =>
      values.map((value) => (value - mean(values)) / scale(values, normalizeByStd));
    const [ofOutcome, ofCall] = [apart(outcomes), apart(calls)];
    for (const turnWeight of [1, 0.5, 0]) {
      const expected = ofOutcome.flatMap((outcome, i) => [outcome + turnWeight * ofCall[i]!, outcome]);
      expectNear(byTurn(estimateMtGrpo(two({ normalizeByStd, turnWeight }))), expected);
    }
  });

  it("compares each turn with those of its number; alone it has the outcome's advantage", () => {
    const episodes = [
      [{ reward: 1 }, { reward: 2 }, { reward: 7 }],
      [{ reward: 3 }, { reward: 4 }],
    ];
    const { advantages } = estimateMtGrpo(layOut(episodes, { episodeRewards: [1, 3], normalizeByStd: false }));
    // Outcomes 1 and 3 lie on the last turns: rewards 1, 2, 6 and 3, 1.
    expect(byTurn({ advantages })).toEqual([-1 - 1, -1 + 0.5, -1, 1 + 1, 1 - 0.5]);
  });

  it("is grpo if the rewards of turns and outcome are mixed", () => {
    const inputs = two({ episodeRewards: undefined });
    expect(estimateMtGrpo(inputs)).toEqual(advantageEstimators.get("grpo")(inputs));
  });
});
