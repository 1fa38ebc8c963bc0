// An agent of the AI SDK, trained as it is.   npm start [seed] [steps]
import { stepCountIs, ToolLoopAgent, tool } from "ai";
import { embeddedPolicy, train } from "cria";
import { z } from "zod";

const calculator = tool({
  description: "Evaluates a difference, 86-58 for example.",
  inputSchema: z.object({ expression: z.string() }),
  execute: ({ expression }) => expression.split("-").reduce((a, b) => String(Number(a) - Number(b))),
});

function makeProblem(i: number) {
  const [all, lost] = [50 + (i % 41), 10 + ((i * 7) % 37)];
  return { question: `Emma has ${all} stamps and loses ${lost}. How many stamps are left?`, answer: `${all - lost}` };
}

const [seed = 1, steps = 30] = process.argv.slice(2).map(Number);
const run = train({
  model: embeddedPolicy, // or "model.gguf", or "hf:Qwen/Qwen3-0.6B-GGUF:Q8_0"
  rows: Array.from({ length: 256 }, (_, i) => makeProblem(i)),
  validation: { rows: Array.from({ length: 64 }, (_, i) => makeProblem(1000 + i)), every: 10, temperature: 1 },
  agent: async ({ row, model, signal }) => {
    const agent = new ToolLoopAgent({
      model,
      instructions: "You solve problems. Use the tool to compute, then answer with ####.",
      tools: { calculator },
      stopWhen: stepCountIs(3),
    });
    const { text } = await agent.generate({ prompt: row.question, abortSignal: signal });
    return text === `#### ${row.answer}` ? 1 : 0;
  },
  steps,
  batchSize: 8,
  learningRate: 1.5e-3,
  seed,
  config: { data: { max_prompt_length: 120, max_response_length: 128 } },
});
for await (const { step, reward, heldOut } of run)
  console.log(
    `step ${step}: reward ${reward?.toFixed(2)}${heldOut === null ? "" : `, held out ${heldOut.toFixed(2)}`}`,
  );
const { before, after, adapter } = await run;
console.log(`held-out success ${before?.toFixed(2)} -> ${after?.toFixed(2)}: ${adapter}`);
