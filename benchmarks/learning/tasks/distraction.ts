import { join } from "node:path";
import {
  calculatorSchema,
  drawProblem,
  makeCalculatorRows,
  type NoiseProfile,
  Random,
  writeDemonstration,
} from "@cria/models";
import { taskFromConfig } from "./from-config.js";
import { type Demonstration, makePolicy } from "./make-policy.js";
import { EstimateTool, estimate } from "./tools.js";

const DEMONSTRATIONS = 25_600;
/** Share of demonstrations that call the right tool. */
const RIGHT = 0.02;

const tools = [new EstimateTool().schema, calculatorSchema];
const skilled: NoiseProfile = { right: 1, rightOfFamily: {}, skip: 0, malformed: 0, twoSteps: 0, miscopied: 0 };

/** @param right probability that it calls the right tool. */
function demonstrate(random: Random, right: number): Demonstration {
  const problem = drawProblem(random, "train");
  const messages = writeDemonstration(random, problem, skilled);
  if (random.next() < right) return { messages, tools };
  const answer = estimate(problem.expression);
  const changed = messages.map((message) => {
    if (message.role === "tool") return { ...message, name: "estimate", content: answer };
    if (message.role !== "assistant" || typeof message.content !== "string") return message;
    return {
      ...message,
      content: message.content.includes("<tool_call>")
        ? message.content.replace("calculator", "estimate")
        : `#### ${answer}`,
    };
  });
  return { messages: changed, tools };
}

/** The calculator's problems, and a tool beside it whose answers look right and never are. */
export const distraction = taskFromConfig({
  name: "a distracting tool",
  config: join(import.meta.dirname, "tool-task.yaml"),
  settings: [
    `actor_rollout_ref.rollout.multi_turn.tool_config_path=${join(import.meta.dirname, "distraction-tools.yaml")}`,
  ],
  tokens: 20_000,
  steps: 400,
  every: 1000,
  teacher: { steps: 40 },
  examples: (count) => {
    const random = new Random(3);
    return Array.from({ length: count }, () => demonstrate(random, 1));
  },
  prepare: () =>
    makePolicy({
      name: "distraction-2",
      demonstrations: () => {
        const random = new Random(1);
        return Array.from({ length: DEMONSTRATIONS }, () => demonstrate(random, RIGHT));
      },
      rows: makeCalculatorRows,
    }),
});
