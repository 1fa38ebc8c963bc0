import { describe, expect, it } from "vitest";
import { SamplerCheck } from "./sampler-check.js";

/** A conversation of two sampled tokens whose logprobs are so far from the step's. */
const held = (distance: number) => ({
  tokenIds: Int32Array.of(1, 2, 3),
  responseMask: Uint8Array.of(0, 1, 1),
  rolloutLogprobs: Float32Array.of(0, -1, -1),
  oldLogprobs: Float32Array.of(0, -1 - distance, -1),
});

function check(workers: Record<string, { distance: number; isOwnClass: boolean }>, here: number[], staleness: number) {
  const samplers = new SamplerCheck();
  const conversations = here.map(held);
  for (const [name, { distance, isOwnClass }] of Object.entries(workers)) {
    const conversation = held(distance);
    samplers.heldBy(conversation.tokenIds, name, isOwnClass);
    conversations.push(conversation);
  }
  return [...samplers.check(conversations, staleness).keys()];
}

describe("logprobs of workers", () => {
  const own = { own: { distance: 2, isOwnClass: true } };
  const other = { other: { distance: 20, isOwnClass: false } };

  it("must be those of the step", () => {
    expect(check({ ...own, ...other }, [1e-6], 0)).toEqual(["own", "other"]);
  });

  it("may be as far away as the policy has moved", () => {
    expect(check(own, [], 1)).toEqual([]);
    expect(check({ ...own, ...other }, [], 1)).toEqual(["other"]);
    expect(check(other, [2], 1)).toEqual(["other"]);
    expect(check(other, [6], 1)).toEqual([]);
    // No worker of the coordinator's class measures how far the policy has moved.
    expect(check(other, [], 1)).toEqual([]);
  });
});
