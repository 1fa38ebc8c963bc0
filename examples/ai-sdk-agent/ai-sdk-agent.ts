// An agent of the AI SDK, as it is, learns to use its tool.   npm start [seed] [steps]
import { stepCountIs, ToolLoopAgent, tool } from "ai";
import { embeddedPolicy, train } from "cria";
import { z } from "zod";

const calculator = tool({
  description: "Evaluates an arithmetic expression.",
  inputSchema: z.object({ expression: z.string() }),
  execute: ({ expression }) => {
    const [, a, sign, b] = /^(\d+)([+-])(\d+)$/.exec(expression) ?? [];
    if (sign === undefined) return "error: invalid expression";
    return String(sign === "+" ? Number(a) + Number(b) : Number(a) - Number(b));
  },
});

function makeProblem(i: number) {
  const [a, b] = [40 + ((i * 7) % 50), 10 + ((i * 11) % 30)];
  return i % 2 === 0
    ? { question: `Emma has ${a} stamps and loses ${b}. How many stamps are left?`, answer: String(a - b) }
    : {
        question: `There are ${a} balls in a box and ${b} balls in a bag. How many balls in total?`,
        answer: String(a + b),
      };
}

const [seed, steps] = [Number(process.argv[2] ?? 1), Number(process.argv[3] ?? 60)];
const run = train({
  model: embeddedPolicy,
  rows: Array.from({ length: 256 }, (_, i) => makeProblem(i)),
  validation: { rows: Array.from({ length: 128 }, (_, i) => makeProblem(1000 + i)), every: 10, temperature: 1 },
  agent: async ({ row, model, signal }) => {
    const agent = new ToolLoopAgent({
      model,
      tools: { calculator },
      instructions: "You solve problems. Use the tool to compute, then answer with ####.",
      stopWhen: stepCountIs(3),
    });
    const { text } = await agent.generate({ prompt: row.question, abortSignal: signal });
    return text.split("####").at(-1)?.trim() === row.answer;
  },
  steps,
  seed,
  learningRate: 1.5e-3,
  name: `ai-sdk-agent-${seed}`,
  config: { data: { max_prompt_length: 120, max_response_length: 128 } },
});
for await (const { step, success, heldOut } of run)
  console.log(`step ${step}: success ${success?.toFixed(2)}, held out ${heldOut?.toFixed(2)}`);
const { before, after, adapter } = await run;
console.log(`held-out success, sampled: ${before?.toFixed(3)} -> ${after?.toFixed(3)}: ${adapter}`);
