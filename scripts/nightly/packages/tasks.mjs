// Runs every script in the package.json of a task that `cria init` wrote, with few steps.
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";

/** A module of a user who has an agent of the AI SDK. */
export const agentModule = `import { tool, ToolLoopAgent } from "ai";
import { z } from "zod";

const calculator = tool({
  description: "Evaluates an arithmetic expression.",
  inputSchema: z.object({ expression: z.string() }),
  execute: ({ expression }) => (/^[0-9+*/() -]+$/.test(expression) ? String(Function("return " + expression)()) : "error: not arithmetic"),
});

export const agent = new ToolLoopAgent({ model: "any/model", tools: { calculator } });
`;

/**
 * Types, check, conversations, training, evaluation, export and the task's own test; gives the steps that were trained.
 */
export async function useTask(cwd, run) {
  await run("npx", ["tsc"], { cwd });
  await run("npm", ["run", "check"], { cwd });
  await run("npm", ["run", "rollout"], { cwd });
  await run("npm", ["run", "train", "--", "trainer.total_training_steps=2"], { cwd });
  await run("npm", ["run", "eval"], { cwd });
  await run("npm", ["run", "export"], { cwd });
  // The trained run must not lie in the way of the test's own.
  await run("npm", ["test"], { cwd });
  const metrics = readFileSync(join(cwd, "runs", basename(cwd), "first", "metrics.jsonl"), "utf8");
  return `${metrics.trim().split("\n").length - 1} steps`;
}
