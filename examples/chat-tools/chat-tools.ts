// A chat in which the model calls tools.   npm start [model.gguf]
// Earlier messages are never evaluated again: each turn only adds its new tokens.
import { fileURLToPath } from "node:url";
import type { ChatMessage } from "@cria/core";
import { loadModel } from "@cria/engine";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { CalculatorTool, getToolFormat } from "@cria/tools";

const path = process.argv[2] ?? fileURLToPath(new URL("../../models/cria-tiny.gguf", import.meta.url));
const model = await loadModel({ path, threads: 1 });
const tokenizer = DeltaTokenizer.forModel(model);
const calculator = new CalculatorTool();
const tools = [calculator.schema];

const prompt: ChatMessage[] = [
  { role: "system", content: "You solve problems. Use the tool to compute, then answer with ####." },
  { role: "user", content: "Emma has 86 stamps and loses 58. How many stamps are left?" },
];
for (const { role, content } of prompt) console.log(`${role}: ${content}`);

const sequence = model.createSequence();
let delta = tokenizer.encodePrompt(prompt, tools);
for (let turn = 0; turn < 4; turn++) {
  const { text, finishReason } = await sequence.generate(delta, { maxTokens: 64, temperature: 0.7, seed: 9 });
  console.log(`assistant: ${text}`);
  const { calls } = getToolFormat("hermes").parse(text, tools);
  if (calls.length === 0) break;
  const answers: ChatMessage[] = [];
  for (const call of calls) {
    // A call that cannot be run gets an answer too: the model may correct itself.
    const content =
      call.error ??
      (call.name === calculator.name
        ? ((await calculator.execute("chat", call.arguments)).response.text ?? "")
        : `there is no tool ${call.name}`);
    answers.push({ role: "tool", name: call.name, content });
    console.log(`tool: ${content}`);
  }
  delta = tokenizer.encodeDelta(answers, finishReason === "stop");
}

await model.dispose();
