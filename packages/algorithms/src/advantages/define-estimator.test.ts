import { describe, expect, expectTypeOf, it } from "vitest";
import { type AdvantageInputs, advantageEstimators, type CostlyInput, defineEstimator } from "../index.js";

const inputs: AdvantageInputs = {
  tokenLevelRewards: [0, 1, 0, 3],
  responseMask: [0, 1, 1, 1],
  offsets: [0, 2, 4],
  groups: ["a", "a"],
};

/** Each token's reward. */
const rewards = ({ tokenLevelRewards }: AdvantageInputs) => Float32Array.from(tokenLevelRewards);

describe("defineEstimator", () => {
  it("makes an estimator of a function that gives advantages alone", () => {
    const own = defineEstimator({ comparesGroup: true, estimate: (given) => ({ advantages: rewards(given) }) });
    const { advantages, returns, metrics } = own(inputs);
    expect([...advantages]).toEqual([0, 1, 0, 3]);
    expect(returns).toEqual(advantages);
    expect(returns).not.toBe(advantages);
    expect(metrics).toEqual({});
    expect(own.comparesGroup).toBe(true);
    expect(own.needs).toBeUndefined();
    expect(advantageEstimators.resolve(own)).toBe(own);
  });

  it("keeps returns and metrics that are given, and the function's name", () => {
    function halved(given: AdvantageInputs) {
      const advantages = rewards(given);
      return { advantages, returns: advantages.map((x) => x / 2), metrics: { spread: 3 } };
    }
    const own = defineEstimator({ comparesGroup: false, estimate: halved });
    expect([...own(inputs).returns]).toEqual([0, 0.5, 0, 1.5]);
    expect(own(inputs).metrics).toEqual({ spread: 3 });
    expect(own.name).toBe("halved");
    expect(defineEstimator({ name: "mine", comparesGroup: false, estimate: halved }).name).toBe("mine");
  });

  it("the types of its needs are not optional", () => {
    const own = defineEstimator({
      comparesGroup: false,
      needs: ["values", "sumPiSquared"],
      estimate: (given) => {
        expectTypeOf(given.values).toEqualTypeOf<ArrayLike<number>>();
        expectTypeOf(given.sumPiSquared).toEqualTypeOf<ArrayLike<number>>();
        expectTypeOf(given.oldLogprobs).toEqualTypeOf<ArrayLike<number>>();
        expectTypeOf(given.baselines).toEqualTypeOf<ArrayLike<number> | undefined>();
        return { advantages: Float32Array.from(given.values) };
      },
    });
    expect(own.needs).toEqual(["values", "sumPiSquared"]);
    expectTypeOf(own.needs).toEqualTypeOf<readonly CostlyInput[] | undefined>();
  });

  it("has turns: the given ones, else each stretch of sampled tokens, along the segments", () => {
    const seen: AdvantageInputs["turns"][] = [];
    const own = defineEstimator({
      comparesGroup: false,
      estimate: ({ turns, responseMask }) => {
        expectTypeOf(turns).toEqualTypeOf<NonNullable<AdvantageInputs["turns"]>>();
        seen.push(turns);
        return { advantages: new Float32Array(responseMask.length) };
      },
    });
    const none = { tools: 0, scores: 0 };
    own({
      ...inputs,
      segments: [
        null,
        [
          { start: 0, end: 1, parent: -1 },
          { start: 1, end: 2, parent: 0 },
        ],
      ],
    });
    expect(seen[0]).toEqual([
      [{ start: 1, end: 2, segment: 0, parent: -1, ...none }],
      [
        { start: 0, end: 1, segment: 0, parent: -1, ...none },
        { start: 1, end: 2, segment: 1, parent: 0, ...none },
      ],
    ]);
    const turns = [[{ start: 1, end: 2, segment: 0, parent: -1, state: "hall", tools: 3, scores: 1 }], []];
    own({ ...inputs, turns });
    expect(seen[1]).toBe(turns);
  });

  it.each([
    ["comparesGroup left out", { estimate: rewards }],
    ["estimate left out", { comparesGroup: true }],
    ["a need that there is not", { comparesGroup: true, needs: ["critic"], estimate: rewards }],
    ["a text for comparesGroup", { comparesGroup: "yes", estimate: rewards }],
  ])("refuses %s", (_, definition) => {
    expect(() => defineEstimator(definition as never)).toThrow(expect.objectContaining({ code: "config/bad-value" }));
  });

  it("refuses an unknown field", () => {
    const definition = { comparesGroup: true, estimate: rewards, need: [] };
    expect(() => defineEstimator(definition as never)).toThrow(expect.objectContaining({ code: "config/unknown-key" }));
  });

  it.each([
    ["nothing", undefined],
    ["too few", { advantages: new Float32Array(3) }],
    ["a plain list", { advantages: [0, 0, 0, 0] }],
    ["returns of another length", { advantages: new Float32Array(4), returns: new Float32Array(2) }],
  ])("refuses %s from the function", (_, given) => {
    const own = defineEstimator({ comparesGroup: false, estimate: () => given as never });
    expect(() => own(inputs)).toThrow(expect.objectContaining({ code: "config/bad-estimator" }));
  });
});
