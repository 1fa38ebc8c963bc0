import { tool } from "@cria/tools";
import { z } from "zod";
import { defineTask } from "../task/task.js";

const FIRST = 20;

/**
 * A task of one row after the other, for the embedded policy and runs with a lag of 1. Its calculator answers the second
 * step's conversations once the third step's ask: the first update is made in between, while they wait.
 */
export function makeWaitingTask({ steps, batchSize }: { steps: number; batchSize: number }) {
  let open = () => {};
  const opened = new Promise<void>((done) => {
    open = done;
  });
  const calculator = tool({
    name: "calculator",
    description: "Computes.",
    inputSchema: z.object({ expression: z.string() }),
    execute: async ({ expression }) => {
      const [a = 0, b = 0] = expression.split("+").map(Number);
      const step = Math.floor((a - FIRST) / batchSize) + 1;
      if (step >= 3) open();
      if (step === 2) await opened;
      return String(a + b);
    },
  });
  return defineTask({
    rows: Array.from({ length: steps * batchSize }, (_, i) => ({
      question: `There are ${i + FIRST} marbles in a box and 7 marbles in a bag. How many marbles in total?`,
    })),
    tools: [calculator],
    reward: ({ answer }) => answer.length % 7,
    maxTurns: 3,
    maxPromptLength: 120,
    maxResponseLength: 128,
  });
}
