// The example of the working directory: a published model learns its task.   npm start [seed] [model.gguf]
import { existsSync } from "node:fs";
import { join } from "node:path";
import { learn } from "./learn.js";
import { summarize } from "./success.js";

const folder = process.cwd();
const [seed = "1", model] = process.argv.slice(2);
if (existsSync(join(folder, "build", "train.jsonl"))) {
  const { seconds } = await learn(folder, {
    seed: Number(seed),
    model,
    onStep: (step, success) => console.log(`step ${String(step).padStart(3)}: success ${success.toFixed(2)}`),
    onMeasured: (stage, success) => {
      const parts = Object.entries(success).map(([source, part]) => `${source} ${part.success.toFixed(2)}`);
      const [low, high] = summarize(success).interval;
      console.log(`held out, ${stage}: ${parts.join(", ")} (95 %: ${low.toFixed(2)} to ${high.toFixed(2)})`);
    },
  });
  const minutes = (spent: number) => `${(spent / 60).toFixed(0)} min`;
  console.log(`${minutes(seconds.sft)} for demonstrations, ${minutes(seconds.rl)} to learn`);
} else {
  console.error("there are no rows yet: npm run make-data");
  process.exitCode = 1;
}
