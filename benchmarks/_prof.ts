import { loadModel } from "@cria/engine";
import { makeBatch, policyGradient, toSequences } from "./train/batch.js";
const [path, rows, length, steps, trainable = "lora"] = process.argv.slice(2);
const lora = trainable === "lora" ? { rank: 16, alpha: 32 } : null;
const model = await loadModel({ path: path!, threads: Number(process.env.T ?? 2), lora, trainable: trainable as "lora", contextSize: 64, maxSequences: 1 });
const batch = makeBatch(Number(rows), Number(length), model.info.vocabSize, undefined as never);
const sequences = toSequences(batch);
for (let i = 0; i < Number(steps); i++) {
  const t = performance.now();
  await model.train(sequences, policyGradient, { learningRate: 1e-4, maxGradNorm: 1 });
  const s = (performance.now() - t) / 1e3;
  console.log(`step ${s.toFixed(2)} s, ${(Number(rows) * Number(length) / s).toFixed(1)} tok/s`);
}
await model.dispose();
