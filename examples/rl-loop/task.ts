// Shared by both ways of training: a tool, problems, and a reward.
import { defineTask, tool } from "cria";
import { z } from "zod";

const calculator = tool({
  name: "calculator",
  description: "Evaluates an arithmetic expression.",
  inputSchema: z.object({ expression: z.string() }),
  execute: ({ expression }) => evaluate(expression),
});

/** The sum or difference of two numbers. */
function evaluate(expression: string): string {
  const [, a, sign, b] = /^(\d+)([+-])(\d+)$/.exec(expression) ?? [];
  if (sign === undefined) return "error: invalid expression";
  return String(sign === "+" ? Number(a) + Number(b) : Number(a) - Number(b));
}

const names = ["Ann", "Ben", "Emma", "Leo"];

function makeProblem(i: number) {
  const [a, b] = [40 + ((i * 7) % 50), 10 + ((i * 11) % 30)];
  return i % 2 === 0
    ? { question: `${names[i % 4]} has ${a} stamps and loses ${b}. How many stamps are left?`, truth: String(a - b) }
    : {
        question: `There are ${a} balls in a box and ${b} balls in a bag. How many balls in total?`,
        truth: String(a + b),
      };
}

export const heldOut = Array.from({ length: 32 }, (_, i) => makeProblem(1000 + i));

export const task = defineTask({
  rows: Array.from({ length: 256 }, (_, i) => makeProblem(i)),
  system: "You solve problems. Use the tool to compute, then answer with ####.",
  tools: [calculator],
  reward: ({ answer, row }) => (answer === row.truth ? 1 : 0),
  maxTurns: 3,
  maxPromptLength: 120,
  maxResponseLength: 128,
});
