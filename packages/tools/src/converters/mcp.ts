import type { JsonSchema, ToolSchema } from "@cria/core";

/** The fields of an MCP tool that a conversion needs; https://modelcontextprotocol.io/specification has the rest. */
export interface McpToolDescription {
  name: string;
  title?: string;
  description?: string;
  /** MCP wants `type: "object"`. */
  inputSchema: JsonSchema & { type: "object" };
}

/** An OpenAI function schema as MCP tool. Its parameters get that type. */
export function toMcpTool({ function: { name, description, parameters } }: ToolSchema): McpToolDescription {
  return {
    name,
    ...(description === undefined ? {} : { description }),
    inputSchema: { ...structuredClone(parameters), type: "object" },
  };
}

/** An MCP tool as OpenAI function schema; its title stands in for a missing description. */
export function fromMcpTool(tool: Readonly<McpToolDescription>): ToolSchema {
  const description = tool.description ?? tool.title;
  return {
    type: "function",
    function: {
      name: tool.name,
      ...(description === undefined ? {} : { description }),
      parameters: structuredClone(tool.inputSchema),
    },
  };
}
