/** Prints the peak resident memory in MiB, less the size of the weights, after one training step. */
import { statSync } from "node:fs";
import { loadModel } from "@cria/engine";
import { makeBatch, policyGradient, toSequences } from "./batch.js";

const [path, rows, length] = process.argv.slice(2);
const model = await loadModel({
  path: path!,
  lora: { rank: 16, alpha: 32 },
  contextSize: 64,
  maxSequences: 1,
});
const sequences = toSequences(makeBatch(Number(rows), Number(length), model.info.vocabSize, false));
await model.train(sequences, policyGradient, { learningRate: 1e-4, maxGradNorm: 1 });
console.log(process.resourceUsage().maxRSS / 1024 - statSync(path!).size / 2 ** 20);
console.error(`layers kept: ${model.keptLayers}`);
await model.dispose();
