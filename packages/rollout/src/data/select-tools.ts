import type { ToolSchema } from "@cria/core";
import type { BaseTool } from "@cria/tools";
import type { DatasetRow } from "./dataset-row.js";

/** Tools that a row's samples may see, in the order that its tool_selection has; without one all, or those that its tools_kwargs name. */
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
