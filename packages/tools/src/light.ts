// Definitions of tasks and tools, in separate chunks: see `light.ts` of @cria/core.

export { isTool } from "./base-tool.js";
export { isToolFormatName, listToolFormatNames } from "./formats/format-names.js";
export { interaction } from "./interactions/interaction.js";
export { tool } from "./tool.js";
