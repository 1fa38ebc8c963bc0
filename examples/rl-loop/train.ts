// One call that trains.   npm run train [steps] [model.gguf]
import { embeddedPolicy, train } from "cria";
import { heldOut, task } from "./task.js";

const steps = Number(process.argv[2] ?? 30);
const run = train({
  model: process.argv[3] ?? embeddedPolicy,
  task,
  validation: { rows: heldOut, every: 10 },
  steps,
  batchSize: 8,
  learningRate: 1.5e-3,
  seed: 1,
});
for await (const { step, success, heldOut: validated } of run)
  console.log(`step ${step}: success ${success?.toFixed(2)}, held out ${validated?.toFixed(2)}`);
const { before, after, adapter } = await run;
console.log(`held-out success ${before?.toFixed(2)} -> ${after?.toFixed(2)}: ${adapter}`);
