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

  it("are not compared with scores of the same worker", () => {
    const samplers = new SamplerCheck(() => 0);
    const conversations = ["a", "b", "a", "c"].map((worker) => {
      const conversation = held(0);
      samplers.heldBy(conversation.tokenIds, worker, true);
      return conversation;
    });
    const list = (able: string[]) => samplers.listExcluded([...conversations, held(0)], able);
    expect(list(["a", "d"])).toEqual(["a"]);
    expect(list(["a", "b", "d", "e"])).toEqual(["a", "b"]);
    // Fewer others are there: at least half of all may score only what they did not hold, drawn by chance.
    expect(list(["a", "b", "c", "d"])).toEqual(["a", "b"]);
    expect(list(["b", "c"])).toEqual(["b"]);
    expect(list(["a", "b", "c"])).toEqual(["a", "b"]);
    // Nobody else is there.
    expect(list(["b"])).toEqual([]);
    expect(samplers.listExcluded([held(0)], ["b"])).toEqual([]);
  });
});
