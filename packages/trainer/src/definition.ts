// The parts that the definition of a task needs, in chunks of its own: see `definition.ts` of @cria/core.

export { defineTask } from "./task/task.js";
