// Score given texts: how likely does the model find each answer?   npm start [model.gguf]
import { fileURLToPath } from "node:url";
import { loadModel } from "@cria/engine";
import { ChatTemplate } from "@cria/tokenizer-delta";

const path = process.argv[2] ?? fileURLToPath(new URL("../../models/cria-tiny.gguf", import.meta.url));
// Scoring runs in the training graph, which wants a trainable model: an adapter is enough, and starts as no change.
const model = await loadModel({ path, threads: 1, lora: { rank: 4 } });

const prompt = new ChatTemplate(model.chatTemplate!).render(
  [{ role: "user", content: "Emma has 86 stamps and loses 58. How many stamps are left?" }],
  { addGenerationPrompt: true },
);
const answers = ["#### 28<|im_end|>", "#### 93417<|im_end|>", "stamps stamps<|im_end|>"];
const promptIds = model.tokenize(prompt);
const sequences = answers.map((answer) => ({
  tokenIds: Int32Array.from([...promptIds, ...model.tokenize(answer)]),
  from: promptIds.length, // score the answer, given the prompt
}));

const scores = await model.score(sequences, { entropy: true });
scores.forEach(({ logprobs, entropy }, i) => {
  const count = logprobs.length - promptIds.length;
  const total = logprobs.reduce((sum, logprob) => sum + logprob, 0); // 0 where not scored
  const uncertainty = entropy!.reduce((sum, nats) => sum + nats, 0) / count;
  const perplexity = Math.exp(-total / count);
  console.log(
    `${answers[i]}  logprob ${total.toFixed(2)}, perplexity ${perplexity.toFixed(1)}, entropy ${uncertainty.toFixed(2)}`,
  );
});

await model.dispose();
