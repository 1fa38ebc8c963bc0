// The parts that the definition of a task and its tools needs, in chunks of its own: see `definition.ts` of @cria/core.

export { isTool } from "./base-tool.js";
export { isToolFormatName, listToolFormatNames } from "./formats/format-names.js";
export { interaction } from "./interactions/interaction.js";
export { tool } from "./tool.js";
