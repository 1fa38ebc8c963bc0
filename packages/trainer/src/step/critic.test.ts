import type { LossFunction, TrainSequence, Trajectory } from "@cria/core";
import { expect, it } from "vitest";
import { type Critic, updateCritic } from "./critic.js";

it("a critic's mini-batches are others in each pass, each prompt once in a pass", async () => {
  const names = ["a", "b", "c", "d", "e", "f", "g", "h"];
  const taught: string[] = [];
  const engine = {
    train: async (sequences: readonly TrainSequence[], _: LossFunction) => {
      taught.push(sequences.map(({ tokenIds }) => names[tokenIds[0]!]).join(""));
      return { metrics: {} };
    },
  };
  const critic = {
    engine,
    epochs: 3,
    miniBatchSize: 2,
    shuffle: true,
    cliprangeValue: 0.5,
    lossAggMode: "token-mean",
    optimizer: {},
  } as unknown as Critic;
  const trajectories = names.map(
    (uid, i) => ({ uid, tokenIds: [i, i], responseMask: [0, 1] }) as unknown as Trajectory,
  );
  const flat = trajectories.map(() => new Float32Array(2));
  const update = { step: 1, seed: 1, responseLength: 4, learningRate: 1, trajectories, values: flat, returns: flat };
  await updateCritic(critic, update, { info: {} } as never);
  const passes = [0, 4, 8].map((start) => taught.slice(start, start + 4));
  for (const pass of passes) expect([...pass.join("")].sort()).toEqual(names);
  expect(new Set(passes.map((pass) => pass.join(" "))).size).toBe(3);
});
