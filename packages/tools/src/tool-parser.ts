/** A call found in sampled text. `error` says, for the model to read, why it cannot be run. */
export interface ParsedToolCall {
  name: string;
  arguments: Record<string, unknown>;
  error?: string;
}

export interface ParsedTurn {
  /** The text without its calls. */
  content: string;
  calls: ParsedToolCall[];
}

/** Reads tool calls from a turn's text. Must never throw and take time linear in the text. */
export type ToolParser = (text: string) => ParsedTurn;

const parsers = new Map<string, ToolParser>();

export function registerToolParser(format: string, parser: ToolParser): void {
  parsers.set(format, parser);
}

export function getToolParser(format: string): ToolParser | undefined {
  return parsers.get(format);
}

export function listToolParsers(): string[] {
  return [...parsers.keys()].sort();
}

const OPEN = "<tool_call>";
const CLOSE = "</tool_call>";

/** The Hermes format: `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`, any number of times. */
export const parseHermes: ToolParser = (text) => {
  const calls: ParsedToolCall[] = [];
  let content = "";
  let at = 0;
  for (;;) {
    const open = text.indexOf(OPEN, at);
    if (open < 0) return { content: content + text.slice(at), calls };
    content += text.slice(at, open);
    const close = text.indexOf(CLOSE, open);
    calls.push(close < 0 ? malformed("unterminated tool call") : parseCall(text.slice(open + OPEN.length, close)));
    if (close < 0) return { content, calls };
    at = close + CLOSE.length;
  }
};

function malformed(reason: string): ParsedToolCall {
  return { name: "", arguments: {}, error: `error: invalid call (${reason})` };
}

function parseCall(text: string): ParsedToolCall {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return malformed("not valid JSON");
  }
  const { name, arguments: args } = (value ?? {}) as { name?: unknown; arguments?: unknown };
  if (typeof name !== "string") return malformed("no name");
  const parsed = typeof args === "string" ? tryParse(args) : args;
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed))
    return { name, arguments: {}, error: "error: invalid call (arguments are not an object)" };
  return { name, arguments: parsed as Record<string, unknown> };
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

registerToolParser("hermes", parseHermes);
