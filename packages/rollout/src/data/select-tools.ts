import type { ToolSchema } from "@cria/core";
import type { BaseTool } from "@cria/tools";
import type { DatasetRow } from "./dataset-row.js";

/**
 * Names of the tools that a row's samples see, in the order of its tool_selection; without one: all, or those named
 * by its tools_kwargs.
 */
export function selectTools(
  tools: ReadonlyMap<string, BaseTool>,
  { extraInfo }: Pick<DatasetRow, "extraInfo">,
): string[] {
  const named = Object.keys(extraInfo.tools_kwargs ?? {});
  const may = (name: string) => tools.has(name) && (!extraInfo.need_tools_kwargs || named.includes(name));
  return [...new Set(extraInfo.tool_selection?.length ? extraInfo.tool_selection : tools.keys())].filter(may);
}

export function listToolSchemas(tools: ReadonlyMap<string, BaseTool>, row: DatasetRow): ToolSchema[] {
  return selectTools(tools, row).map((name) => tools.get(name)!.schema);
}
