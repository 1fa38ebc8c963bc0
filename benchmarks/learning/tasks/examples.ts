/** Examples of this repository as tasks. */
import { join } from "node:path";
import type { LearningTask } from "./learning-task.js";

const examples = join(import.meta.dirname, "..", "..", "..", "examples");

/** Word problems that mostly need one call: nearly solved after ten small steps. */
export const calculator: LearningTask = {
  name: "calculator",
  config: join(examples, "calculator", "config.yaml"),
  prepare: async () => [],
  steps: 30,
  teacherSteps: 40,
};

/** Four guesses in a row, and one reward at the end. */
export const codeGame: LearningTask = {
  name: "code game",
  config: join(examples, "code-game", "config.yaml"),
  prepare: async () => [],
  steps: 60,
  teacherSteps: 40,
};
