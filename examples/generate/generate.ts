// Generate text, streamed.   npm start [model.gguf]
import { fileURLToPath } from "node:url";
import { loadModel } from "@cria/engine";
import { ChatTemplate } from "@cria/tokenizer-delta";

const path = process.argv[2] ?? fileURLToPath(new URL("../../models/cria-tiny.gguf", import.meta.url));
const model = await loadModel({ path, threads: 1 }); // more threads for a model of ordinary size

const prompt = new ChatTemplate(model.chatTemplate!).render(
  [{ role: "user", content: "Ann has 12 apples and buys 30 more. How many apples does Ann have?" }],
  { addGenerationPrompt: true },
);
const sequence = model.createSequence();
const { text, finishReason, tokenIds, stats } = await sequence.generate(model.tokenize(prompt), {
  maxTokens: 64,
  temperature: 0.8,
  seed: 1,
  onText: (piece) => process.stdout.write(piece),
});
console.log(
  `\n${text.length} characters, ${tokenIds.length} tokens in ${stats.decodeMs.toFixed(0)} ms, ${finishReason}`,
);

await model.dispose();
