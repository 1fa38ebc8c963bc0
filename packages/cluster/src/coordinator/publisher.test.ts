import { expect, it } from "vitest";
import type { WeightsEngine } from "../jobs/weights.js";
import { LocalHub } from "../local/local-store.js";
import { openLocalBus } from "../local/open-local-bus.js";
import { Publisher } from "./publisher.js";

const run = "a".repeat(64);

/** An engine of one trained number. */
const makeEngine = (value: number) => {
  const engine = {
    value,
    stepCount: value,
    listTensors: () => [{ name: "one", type: "f32", shape: [1], trainable: true }],
    readTensor: async () => Float32Array.of(engine.value),
  };
  return engine as typeof engine & WeightsEngine;
};

async function open(lag: number) {
  const bus = openLocalBus({ hub: new LocalHub() });
  const live = makeEngine(0);
  const publisher = new Publisher(bus, live, { sha: run, weights: "", lag });
  const seen = new Map<number, string>();
  /** An optimizer step, and the weights after it sent. */
  const advance = async (value: number) => {
    live.value = value;
    live.stepCount = value;
    await publisher.publish();
    seen.set(value, publisher.live.weights);
  };
  /** The values that are on the bus. */
  const list = async () => {
    const found: number[] = [];
    for (const [value, weights] of seen) if (await bus.blobs.has(weights)) found.push(value);
    return found;
  };
  await advance(0);
  return { bus, live, publisher, advance, list };
}

it("keeps the live weights alone on the bus, without lag", async () => {
  const { live, publisher, advance, list } = await open(0);
  expect(await publisher.keep(live)).toEqual(publisher.live);
  for (const value of [1, 2]) {
    await advance(value);
    expect(await list()).toEqual([value]);
  }
});

it("keeps the versions that the lag needs, and the live weights", async () => {
  const { publisher, advance, list } = await open(2);
  for (const step of [1, 2, 3, 4]) {
    // Two optimizer steps per update: sampling uses the weights after the second.
    const version = makeEngine(10 * (step - 1));
    expect(await publisher.keep(version)).toEqual(publisher.live);
    expect(await publisher.keep(version)).toEqual(publisher.live);
    await advance(10 * step - 5);
    await advance(10 * step);
  }
  expect(await list()).toEqual([20, 30, 40]);
});

it("sends versions of a checkpoint, and all that jobs need once more", async () => {
  const { bus, publisher } = await open(2);
  const versions = [];
  for (const value of [7, 8]) versions.push(await publisher.keep(makeEngine(value)));
  const all = [...versions, publisher.live].map(({ weights }) => weights);
  for (const weights of all) {
    expect(await bus.blobs.has(weights)).toBe(true);
    await bus.blobs.delete(weights);
  }
  await publisher.repeat();
  for (const weights of all) expect(await bus.blobs.has(weights)).toBe(true);
});
