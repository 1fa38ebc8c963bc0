import { type ChatMessage, contentText } from "cria";

export interface Call {
  name: string;
  arguments: Record<string, string | number>;
}

/** A turn that calls a tool, in the Hermes format; with spaces, as models write JSON. */
export function writeCall({ name, arguments: given }: Call): string {
  const list = Object.entries(given).map(([key, value]) => `${JSON.stringify(key)}: ${JSON.stringify(value)}`);
  return `<tool_call>{"name": ${JSON.stringify(name)}, "arguments": {${list.join(", ")}}}</tool_call>`;
}

/** The texts of the assistant's turns. */
export const readTurns = (messages: readonly ChatMessage[]): string[] =>
  messages.filter(({ role }) => role === "assistant").map(({ content }) => contentText(content));

/** The calls of a turn, in order; undefined: one that is no JSON. */
export const readCalls = (turn: string): ({ name?: unknown; arguments?: unknown } | undefined)[] =>
  [...turn.matchAll(/<tool_call>(.*?)<\/tool_call>/gs)].map(([, text]) => readJson(text!));

function readJson(text: string) {
  try {
    return JSON.parse(text) ?? undefined;
  } catch {
    return undefined;
  }
}
