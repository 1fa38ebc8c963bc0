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

  it("what it needs is there, by its type", () => {
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

  it.each([
    ["comparesGroup left out", { estimate: rewards }],
    ["estimate left out", { comparesGroup: true }],
    ["a need that there is not", { comparesGroup: true, needs: ["critic"], estimate: rewards }],
    ["a text for comparesGroup", { comparesGroup: "yes", estimate: rewards }],
  ])("refuses %s", (_, definition) => {
    expect(() => defineEstimator(definition as never)).toThrow(expect.objectContaining({ code: "config/bad-value" }));
  });

  it("refuses a field that there is not", () => {
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
