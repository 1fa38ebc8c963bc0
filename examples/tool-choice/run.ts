// A published model learns when to call a tool, and which.   npm start [seed] [model.gguf]
import { existsSync } from "node:fs";
import { join } from "node:path";
import { learn } from "./learn.js";

const folder = import.meta.dirname;
const [seed = "1", model] = process.argv.slice(2);
if (existsSync(join(folder, "build", "train.jsonl"))) {
  const { seconds } = await learn(folder, {
    seed: Number(seed),
    model,
    onStep: (step, success) => console.log(`step ${String(step).padStart(3)}: success ${success.toFixed(2)}`),
    onMeasured: (stage, success) => {
      const parts = Object.entries(success).map(([source, part]) => `${source} ${part.success.toFixed(2)}`);
      console.log(`held out, ${stage}: ${parts.join(", ")}`);
    },
  });
  const minutes = (spent: number) => `${(spent / 60).toFixed(0)} min`;
  console.log(`${minutes(seconds.sft)} for demonstrations, ${minutes(seconds.rl)} to learn`);
} else {
  console.error("there are no rows yet: npm run make-data");
  process.exitCode = 1;
}
