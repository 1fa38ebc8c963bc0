import { TinyModels } from "@cria/engine/testing";
import { afterAll, expect, it } from "vitest";
import { hasWeights, readWeights, writeWeights } from "../jobs/weights.js";
import { PolicyPlaces } from "./policy-places.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

const never = new AbortController().signal;

/** An engine, and the weights that it had after each of some updates. */
async function open(lag: number) {
  const engine = await models.load({ type: "f32" }, { trainable: "lora", lora: { rank: 4 }, contextSize: 64 });
  if (!hasWeights(engine)) throw new Error("the tiny model's weights can be read");
  const first = await readWeights(engine);
  const known = [0, 1, 2, 3].map((version) => {
    const values = new Float32Array(Uint8Array.from(first).buffer).map((value, i) => value + version * ((i % 7) - 3));
    return new Uint8Array(values.buffer);
  });
  const fetched: string[] = [];
  const fetch = async (name: string) => {
    fetched.push(name);
    return known[Number(name)]!;
  };
  const places = new PolicyPlaces(engine, fetch, { lag });
  /** Samples with a version's weights. */
  const say = (version: number, kind: "rollout" | "score" = "rollout", during = async () => {}) =>
    places.use(kind, { weights: String(version), version, signal: never }, async (policy) => {
      await during();
      const sequence = policy.createSequence();
      const { logprobs } = await sequence.generate([1, 2, 3], { maxTokens: 4, stopTokens: [], seed: 1 });
      sequence.dispose();
      return [...logprobs];
    });
  const expected: number[][] = [];
  for (const weights of known) {
    await writeWeights(engine, weights);
    const sequence = engine.createSequence();
    expected.push([...(await sequence.generate([1, 2, 3], { maxTokens: 4, stopTokens: [], seed: 1 })).logprobs]);
    sequence.dispose();
  }
  return { say, expected, fetched, places };
}

it("samples by several weights at once, while scores are computed with newer ones", async () => {
  const { say, expected, fetched, places } = await open(1);
  let end = () => {};
  const held = new Promise<void>((resolve) => {
    end = resolve;
  });
  const jobs = [say(0, "rollout", () => held), say(1, "rollout", () => held), say(0, "rollout", () => held)];
  expect(await say(3, "score")).toEqual(expected[3]);
  end();
  expect(await Promise.all(jobs)).toEqual([expected[0], expected[1], expected[0]]);
  expect(fetched.sort()).toEqual(["0", "1", "3"]);
  // The oldest make room.
  expect(await say(2)).toEqual(expected[2]);
  expect(await say(1)).toEqual(expected[1]);
  expect(fetched).toEqual(["0", "1", "3", "2"]);
  await places.dispose();
});

it("takes older weights after newer ones, as another coordinator sends them", async () => {
  const { say, expected, fetched, places } = await open(1);
  await Promise.all([say(2), say(3)]);
  expect(await Promise.all([0, 1, 0, 1].map((version) => say(version)))).toEqual([0, 1, 0, 1].map((v) => expected[v]));
  expect(fetched.sort()).toEqual(["0", "1", "2", "3"]);
  await places.dispose();
});

it("holds conversations with the live weights, without lag", async () => {
  const { say, expected, fetched } = await open(0);
  expect(await say(0)).toEqual(expected[0]);
  expect(await say(0, "score")).toEqual(expected[0]);
  expect(fetched).toEqual(["0"]);
});
