import { expect, it } from "vitest";
import { pickSampling } from "./sampling.js";

it("what is left out is sampled from all tokens at temperature 1, and a seed is no parameter", () => {
  expect(pickSampling({ seed: 3 })).toEqual({ temperature: 1, topP: 1, topK: 0, minP: 0 });
  const given = { temperature: 0, topP: 0.5, topK: 2, minP: 0.1 };
  expect(pickSampling({ ...given, ...{ maxTokens: 1 } })).toEqual(given);
});
