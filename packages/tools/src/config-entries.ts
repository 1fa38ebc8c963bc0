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
        name: z.string().optional().describe("The name that the model calls."),
        description: z.string().optional().describe("The tool's purpose, for the model to read."),
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
  config: config.describe("The argument of the tool's constructor."),
  tool_schema: toolSchema,
  mcp: z
    .strictObject({
      mcp_servers_config_path: z.string().describe("A JSON file with mcpServers, relative to this file."),
      tool_selected_list: z.array(z.string()).optional().describe("The tools to take; default: all of them."),
    })
    .optional()
    .describe("With @cria/tools#McpTools: servers from a file."),
});

/** An entry of a file of interactions. */
export const interactionEntrySchema = z.strictObject({
  name: z.string().optional().describe("The name in rows; default: the class's name."),
  class_name: z.string().meta({
    description: 'The interaction: "./interaction.ts#Export", "package#Export", or a built-in one.',
    examples: interactionClasses.names().filter(isOurs),
  }),
  config: config.describe("The argument of the interaction's constructor."),
});
