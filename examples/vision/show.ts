import { existsSync } from "node:fs";
import { join } from "node:path";
import { learn } from "./learn.js";

/** Trains by a folder's configs and prints the progress. */
export async function showLearning(folder: string, seed: number): Promise<void> {
  if (!existsSync(join(folder, "build", "train.jsonl"))) {
    console.error("there are no rows yet: npm run make-data");
    process.exitCode = 1;
    return;
  }
  let sum = 0;
  const { before, after, seconds } = await learn(folder, {
    seed,
    onStep: (step, reward) => {
      sum += reward;
      if (step % 25 > 0) return;
      console.log(`step ${String(step).padStart(4)}: mean reward of 25 steps ${(sum / 25).toFixed(2)}`);
      sum = 0;
    },
  });
  const change = (name: "greedy" | "sampled") => `${before[name].toFixed(2)} -> ${after[name].toFixed(2)} ${name}`;
  console.log(`held out: ${change("greedy")}, ${change("sampled")}`);
  console.log(`${seconds.stages.toFixed(0)} s for the habit, ${seconds.train.toFixed(0)} s to learn`);
}
