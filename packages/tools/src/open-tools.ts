import { ToolError } from "@cria/core";
import { type AiSdkTool, fromAiSdkTool, isAiSdkTool } from "./ai-sdk-tool.js";
import { type BaseTool, isTool } from "./base-tool.js";
import { ToolCollection } from "./tool-collection.js";

/** A source of tools that exist only after a start or a connection, such as an MCP server (`mcpServer`). */
export interface ToolSource {
  /** Its name in errors. */
  readonly name: string;
  /** Makes the tools. The caller disposes of them. */
  open(): Promise<readonly BaseTool[]>;
}

/**
 * An element of a list of tools: a tool of `tool()` or any other BaseTool; tools of the AI SDK by name, `{ weather }`,
 * or an agent that has `tools`; an MCP server (`mcpServer`).
 */
export type ToolListItem<Row = unknown> =
  | BaseTool<Row>
  | ToolSource
  | Readonly<Record<string, AiSdkTool>>
  | AgentWithTools;

interface AgentWithTools {
  readonly tools: Readonly<Record<string, AiSdkTool>>;
}

export interface OpenedTools {
  /** Tools by name, in the list's order. */
  readonly tools: Map<string, BaseTool>;
  /** Ends the servers that were started for the tools. A BaseTool of the list stays open: its maker disposes of it. */
  dispose(): Promise<void>;
}

/**
 * Makes one set from a list of tools of any kind, and starts or reaches their servers.
 * @throws ToolError for two tools of one name, a server that cannot be reached, or an element that is no tool.
 */
export async function openTools(list: readonly ToolListItem[]): Promise<OpenedTools> {
  const collection = new ToolCollection();
  const opened: BaseTool[] = [];
  const dispose = () => disposeTools(opened);
  try {
    for (const [i, item] of list.entries()) {
      const origin = `tools[${i}]`;
      if (isTool(item)) collection.add(item, origin);
      else if (isToolSource(item)) {
        const made = await item.open();
        opened.push(...made);
        for (const tool of made) collection.add(tool, `${origin}, ${item.name}`);
      } else {
        for (const [name, tool] of listAiSdkTools(item, origin))
          collection.add(await fromAiSdkTool(name, tool), `${origin}, a tool of the AI SDK`);
      }
    }
    return { tools: collection.tools, dispose };
  } catch (error) {
    // Servers that were started would keep the process alive.
    await dispose();
    throw error;
  }
}

/**
 * Frees resources of tools and interactions that outlive trajectories: processes, servers. It skips those that throw.
 */
export async function disposeTools(tools: Iterable<{ dispose?(): Promise<void> }>): Promise<void> {
  await Promise.allSettled([...tools].map(async (tool) => tool.dispose?.()));
}

/** Checks the shape, as `isTool` does. */
export function isToolSource(value: unknown): value is ToolSource {
  return typeof value === "object" && typeof (value as ToolSource | null)?.open === "function";
}

/** Unlike in the exports of a module, everything in an object of a list has to be a tool. */
function listAiSdkTools(item: unknown, origin: string): [string, AiSdkTool][] {
  const fail = (subject: string, received: string, remedy: string) =>
    new ToolError("is not a tool", {
      code: "tool/not-a-tool",
      subject,
      expected: "tool(...), another BaseTool, mcpServer(...), or an object of AI SDK tools by name",
      received,
      remedy,
    });
  if (typeof item === "function")
    throw fail(origin, `${item.name || "a function"}`, "give an object, as new CalculatorTool(), not its class");
  if (typeof item !== "object" || item === null) throw fail(origin, String(item), "remove it");
  if (isAiSdkTool(item))
    throw fail(origin, "a tool of the AI SDK, which has no name", "put it into an object under its name: { weather }");
  const { tools } = item as { tools?: unknown };
  const isAgent = typeof tools === "object" && tools !== null && !isAiSdkTool(tools);
  return Object.entries(isAgent ? tools : item).map(([name, value]): [string, AiSdkTool] => {
    if (isAiSdkTool(value)) return [name, value];
    const remedy = isTool(value) ? "put it directly into the list: it has a name" : "remove it";
    throw fail(`${origin}.${name}`, isTool(value) ? `tool "${value.name}"` : typeof value, remedy);
  });
}
