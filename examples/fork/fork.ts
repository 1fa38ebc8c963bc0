// Fork a conversation: the prompt is evaluated once, and several answers go on from it.   npm start [model.gguf]
import { fileURLToPath } from "node:url";
import { loadModel } from "@cria/engine";
import { ChatTemplate } from "@cria/tokenizer-delta";

const path = process.argv[2] ?? fileURLToPath(new URL("../../models/cria-tiny.gguf", import.meta.url));
const model = await loadModel({ path, threads: 1, maxSequences: 8 });

const prompt = new ChatTemplate(model.chatTemplate!).render(
  [{ role: "user", content: "There are 15 balls in a box and 28 balls in a bag. How many balls in total?" }],
  { addGenerationPrompt: true },
);
const trunk = model.createSequence();
await trunk.prefill(model.tokenize(prompt));

// All at once: the engine decodes them in one batch.
const answers = await Promise.all(
  [1, 2, 3, 4].map(async (seed) => {
    const branch = trunk.fork();
    const result = await branch.generate([], { maxTokens: 48, temperature: 1, seed });
    branch.dispose();
    return result;
  }),
);
for (const [i, { text, stats }] of answers.entries())
  console.log(
    `${i + 1}: ${JSON.stringify(text)} (${stats.reusedTokens} tokens shared, ${stats.prefillTokens} evaluated)`,
  );

// The trunk still stands where the prompt ends: fork it again, or go on with it.
console.log(`trunk: ${trunk.tokenCount} tokens`);
await model.dispose();
