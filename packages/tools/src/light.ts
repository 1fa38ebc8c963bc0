// The part of this package that `cria` loads at start, published as ./light: nothing here needs a parser, a schema
// library or anything that runs a tool. Functions that need more load it when they are called (`when-called.ts`).
// `tests/loading.test.ts` counts the modules.

export { findLastAnswer } from "@cria/core";
export { BaseTool, isTool } from "./base-tool.js";
export { isToolFormatName, listToolFormatNames } from "./formats/format-names.js";
export { BaseInteraction } from "./interactions/base-interaction.js";
export { interaction } from "./interactions/interaction.js";
export { mcpServer } from "./mcp/mcp-server.js";
export { openTools } from "./open-tools.js";
export { defineToolSchema } from "./schema.js";
export { tool } from "./tool.js";
export { loadToolConfig } from "./when-called.js";
