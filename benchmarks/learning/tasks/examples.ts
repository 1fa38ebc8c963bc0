/** Examples of this repository as tasks. */
import { join } from "node:path";
import { taskFromConfig } from "./from-config.js";

const examples = join(import.meta.dirname, "..", "..", "..", "examples");

/** Word problems that mostly need one call: nearly solved after ten small steps. */
export const calculator = taskFromConfig({
  name: "calculator",
  config: join(examples, "calculator", "config.yaml"),
  steps: 30,
  teacherSteps: 40,
});

/** Four guesses in a row, and one reward at the end. */
export const codeGame = taskFromConfig({
  name: "code game",
  config: join(examples, "code-game", "config.yaml"),
  steps: 60,
  teacherSteps: 40,
});
