import { createHash } from "node:crypto";
import { type ChatMessage, contentText, type ToolSchema } from "@cria/core";

/** Hash of values, independent of the order of object keys. */
export function hashValue(...values: readonly unknown[]): string {
  return createHash("sha256").update(stringify(values)).digest("hex").slice(0, 24);
}

/**
 * Hashes the paths to inputs incrementally, so that each prefix of a conversation is hashed without reading it
 * again.
 */
export class PathHash {
  private readonly hash;
  private readonly tail: string;
  private isEmpty = true;

  /** @param parent id of the answer before the messages. */
  constructor(parent: string | null, tools: string | null) {
    this.hash = createHash("sha256").update(`[${JSON.stringify(parent)},[`);
    this.tail = `],${JSON.stringify(tools)}]`;
  }

  /** @param key key of the next message. */
  add(key: string): void {
    this.hash.update(`${this.isEmpty ? "" : ","}${JSON.stringify(key)}`);
    this.isEmpty = false;
  }

  /** Hash of the messages added so far. */
  end(): string {
    return this.hash.copy().update(this.tail).digest("hex").slice(0, 24);
  }
}

/**
 * Key under which two messages count as the same. Clients return an answer as their framework stores it: thoughts
 * are often dropped, text is trimmed, call arguments are parsed and printed again, and call ids may be new.
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

/** True if the calls also have the same ids; distinguishes siblings with equal texts. */
export function haveSameIds(a: ChatMessage, b: ChatMessage): boolean {
  const ids = ({ tool_calls = [] }: ChatMessage) => tool_calls.map(({ id }) => id).join();
  return ids(a) === ids(b);
}

/** True if the second message has the same thoughts, or none: most clients drop them. */
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

/** JSON with sorted object keys. */
function stringify(value: unknown): string {
  return JSON.stringify(value, (_, entry: unknown) =>
    typeof entry === "object" && entry !== null && !Array.isArray(entry)
      ? Object.fromEntries(Object.entries(entry).sort(([a], [b]) => (a < b ? -1 : 1)))
      : entry,
  );
}
