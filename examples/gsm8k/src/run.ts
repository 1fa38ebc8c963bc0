// node dist/run.js <model.gguf> [folder with train.jsonl and test.jsonl] [key=value ...]
import { join, resolve } from "node:path";
import { runOneStep } from "./run-one-step.js";

const root = join(import.meta.dirname, "..");
const overrides = process.argv.slice(2).filter((argument) => argument.includes("="));
const [model, folder] = process.argv.slice(2).filter((argument) => !argument.includes("="));
if (!model) {
  console.error("usage: node dist/run.js <model.gguf> [folder of GSM8K] [key=value ...]");
  process.exit(1);
}
const data = resolve(folder ?? join(root, "sample"));
const metrics = await runOneStep({ data, model: resolve(model), work: join(root, "build"), overrides });
console.log(JSON.stringify(metrics, null, 2));
