import { ToolError } from "@cria/core";
import type { BaseTool } from "./base-tool.js";
import { checkToolSchema } from "./check-tool-schema.js";

/** Tools by name, each name once. */
export class ToolCollection {
  readonly tools = new Map<string, BaseTool>();
  private readonly origins = new Map<string, string>();

  /**
   * @param origin the tool's source, for errors.
   * @throws ToolError for a name that is taken, or a schema that is wrong.
   */
  add(tool: BaseTool, origin: string): void {
    checkToolSchema(tool.schema);
    const other = this.origins.get(tool.name);
    if (other !== undefined) {
      throw new ToolError("is defined twice", {
        code: "tool/duplicate",
        subject: `tool "${tool.name}"`,
        expected: "one tool of this name",
        received: `${other}; and ${origin}`,
        remedy: "give each tool its own name",
      });
    }
    this.tools.set(tool.name, tool);
    this.origins.set(tool.name, origin);
  }
}
