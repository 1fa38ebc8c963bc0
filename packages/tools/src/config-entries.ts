import type { ToolSchema } from "@cria/core";
import { z } from "zod";
import { toolClasses } from "./builtin-tools.js";
import { interactionClasses } from "./interactions/registry.js";

const isOurs = (name: string) => name.startsWith("@cria/");
const config = z.record(z.string(), z.unknown()).optional();

const toolSchema = z
  .looseObject({
    type: z.literal("function").optional(),
    function: z
      .looseObject({
        name: z.string().optional().describe("What the model calls the tool."),
        description: z.string().optional().describe("What the tool does, for the model to read."),
        parameters: z.looseObject({}).optional().describe("JSON Schema of the arguments."),
      })
      .optional(),
  })
  .optional()
  .transform((schema) => schema as ToolSchema | undefined)
  .describe("OpenAI function schema that the model sees instead of the tool's own.");

/** An entry of a file of tools. */
export const toolEntrySchema = z.strictObject({
  class_name: z.string().meta({
    description: 'The tool: "./tool.ts#Export", "package#Export", or a built-in one.',
    examples: toolClasses.names().filter(isOurs),
  }),
  config: config.describe("What the tool's constructor gets."),
  tool_schema: toolSchema,
  mcp: z
    .strictObject({
      mcp_servers_config_path: z.string().describe("A JSON file with mcpServers, seen from this file."),
      tool_selected_list: z.array(z.string()).optional().describe("Which of their tools to take; else all."),
    })
    .optional()
    .describe("Of @cria/tools#McpTools: servers of a file."),
});

/** An entry of a file of interactions. */
export const interactionEntrySchema = z.strictObject({
  name: z.string().optional().describe("What rows call it; else the class's own name."),
  class_name: z.string().meta({
    description: 'The interaction: "./interaction.ts#Export", "package#Export", or a built-in one.',
    examples: interactionClasses.names().filter(isOurs),
  }),
  config: config.describe("What the interaction's constructor gets."),
});
