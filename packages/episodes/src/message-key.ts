import { createHash } from "node:crypto";
import { type ChatMessage, contentText, type ToolSchema } from "@cria/core";

/** A short name for a value: the same for equal values, whatever the order of their keys. */
export function hashValue(...values: readonly unknown[]): string {
  return createHash("sha256").update(stringify(values)).digest("hex").slice(0, 24);
}

/** Names the paths to inputs, a message at a time: each beginning of a conversation has its name without being read anew. */
export class PathHash {
  private readonly hash;
  private readonly tail: string;
  private isEmpty = true;

  /** @param parent id of the answer that the messages follow. */
  constructor(parent: string | null, tools: string | null) {
    this.hash = createHash("sha256").update(`[${JSON.stringify(parent)},[`);
    this.tail = `],${JSON.stringify(tools)}]`;
  }

  /** @param key of the next message. */
  add(key: string): void {
    this.hash.update(`${this.isEmpty ? "" : ","}${JSON.stringify(key)}`);
    this.isEmpty = false;
  }

  /** The name of what was added so far. */
  end(): string {
    return this.hash.copy().update(this.tail).digest("hex").slice(0, 24);
  }
}

/**
 * What makes two messages the same. Clients send an answer back as their framework keeps it: thoughts are often dropped, white
 * space around the text is trimmed, arguments of calls are parsed and printed again, and ids of calls may be new.
 */
export function keyOfMessage(message: ChatMessage): string {
  const { role, tool_calls = [] } = message;
  const content = contentText(message.content, ({ image }) => `\0${"hash" in image ? image.hash : stringify(image)}\0`);
  if (role !== "assistant") return stringify([role, content]);
  return stringify([
    role,
    content.trim(),
    ...tool_calls.map(({ function: { name, arguments: given } }) => [name, readArguments(given)]),
  ]);
}

export function keyOfTools(tools: readonly ToolSchema[]): string {
  return stringify(tools);
}

/** Whether the calls have the same ids too: siblings may say the same. */
export function haveSameIds(a: ChatMessage, b: ChatMessage): boolean {
  const ids = ({ tool_calls = [] }: ChatMessage) => tool_calls.map(({ id }) => id).join();
  return ids(a) === ids(b);
}

/** Whether the thoughts are the same, where the second message tells any: most clients drop them. */
export function haveSameThoughts(a: ChatMessage, b: ChatMessage): boolean {
  return (b.reasoning_content ?? "") !== "" && (a.reasoning_content ?? "").trim() === b.reasoning_content!.trim();
}

function readArguments(given: Record<string, unknown> | string): unknown {
  if (typeof given !== "string") return given;
  try {
    return JSON.parse(given) as unknown;
  } catch {
    return given;
  }
}

/** JSON with the keys of objects in order. */
function stringify(value: unknown): string {
  return JSON.stringify(value, (_, entry: unknown) =>
    typeof entry === "object" && entry !== null && !Array.isArray(entry)
      ? Object.fromEntries(Object.entries(entry).sort(([a], [b]) => (a < b ? -1 : 1)))
      : entry,
  );
}
