import type { ChatMessage, ImageRecord, ImageSource } from "@cria/core";
import type { DumpLine, DumpTurn } from "@cria/records";

export type MessagePart =
  | { kind: "text"; text: string }
  | { kind: "thinking"; text: string }
  | { kind: "image"; image: ImageRecord }
  /** `arguments` as indented JSON, or the original text if it is no JSON. */
  | { kind: "call"; name: string; arguments: string; valid: boolean };

export interface ShownMessage {
  role: ChatMessage["role"];
  name: string | null;
  parts: MessagePart[];
  /** Kind of a failed call's answer. */
  failure: string | null;
  /** Step rewards of the turn that ends here, or of its consequences. */
  rewards: { from: "tool" | "turn"; value: number }[];
  turn: DumpTurn | null;
  ofPrompt: boolean;
}

/** The messages of a conversation for a reader, with the dump's knowledge of each. */
export function splitConversation(line: DumpLine, messages: readonly ChatMessage[] = line.messages): ShownMessage[] {
  const whole = messages === line.messages;
  const prompt = whole ? line.prompt_messages : 0;
  const turns = whole ? matchTurns(line.turns, messages.slice(prompt)) : null;
  return messages.map((message, i): ShownMessage => {
    const matched = i >= prompt ? turns?.[i - prompt] : undefined;
    const guessed = !turns && message.role === "tool" && /^error: /i.test(readText(message.content)) ? "error" : null;
    return {
      role: message.role,
      name: message.name ?? null,
      parts: splitMessage(message),
      failure: matched?.failure ?? guessed,
      rewards: matched && message.role === "assistant" ? findRewards(line, matched.turn) : [],
      turn: matched?.turn ?? null,
      ofPrompt: i < prompt,
    };
  });
}

/** Only the texts of a content. */
export function readText(content: ChatMessage["content"]): string {
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

/** The content as text, with a word for each image. */
export function showContent(content: ChatMessage["content"]): string {
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : "[image]")).join("");
}

function isRecord(image: ImageSource): image is ImageRecord {
  return "hash" in image && typeof image.hash === "string";
}

/** Roles that the policy played in one of an agent's segments. */
export function listRoles({ turns, segments = [] }: DumpLine, segment: number): string[] {
  const { start, end } = segments[segment]!;
  const own = turns.filter((turn) => turn.start >= start && turn.end <= end);
  return [...new Set(own.flatMap(({ call }) => (typeof call?.request.role === "string" ? [call.request.role] : [])))];
}

/** Messages from the first of a tree of segments down to one of them. */
export function readBranch(line: DumpLine, segment: number): ChatMessage[] {
  const segments = line.segments ?? [];
  const messages: ChatMessage[] = [];
  const seen = new Set<number>();
  for (let at = segment; at >= 0 && segments[at] && !seen.has(at); at = segments[at]!.parent) {
    seen.add(at);
    messages.unshift(...segments[at]!.messages);
  }
  return messages;
}

const MARKED = /<think>([\s\S]*?)(?:<\/think>|$)|<tool_call>([\s\S]*?)(?:<\/tool_call>|$)/g;

function splitMessage(message: ChatMessage): MessagePart[] {
  const parts: MessagePart[] = [];
  const addText = (text: string) => {
    if (text.trim() !== "") parts.push({ kind: "text", text: text.trim() });
  };
  if (message.reasoning_content) parts.push({ kind: "thinking", text: message.reasoning_content });
  const text = readText(message.content);
  if (typeof message.content !== "string") {
    for (const part of message.content) {
      if (part.type === "text") addText(part.text);
      else if (isRecord(part.image)) parts.push({ kind: "image", image: part.image });
      else addText("[image]");
    }
  } else if (message.role === "assistant") {
    let end = 0;
    for (const match of text.matchAll(MARKED)) {
      addText(text.slice(end, match.index));
      if (match[1] !== undefined) parts.push({ kind: "thinking", text: match[1].trim() });
      else parts.push(readCall(match[2]!));
      end = match.index + match[0].length;
    }
    addText(text.slice(end));
  } else addText(text);
  for (const call of message.tool_calls ?? [])
    parts.push({ kind: "call", name: call.function.name, ...readArguments(call.function.arguments) });
  if (parts.length === 0) parts.push({ kind: "text", text: "" });
  return parts;
}

function readCall(text: string): MessagePart {
  try {
    const call = JSON.parse(text) as { name?: unknown; arguments?: unknown };
    if (typeof call.name === "string") return { kind: "call", name: call.name, ...readArguments(call.arguments ?? {}) };
  } catch {
    // The model's text is shown unchanged.
  }
  return { kind: "call", name: "", arguments: text.trim(), valid: false };
}

/**
 * A list of numbers (a box, a point), which is kept on one line. Strings in JSON have no line breaks, so they stay
 * unchanged.
 */
const NUMBERS = /\[\n\s+[-+.\deE]+(?:,\n\s+[-+.\deE]+)*\n\s*\]/g;
const joinLines = (list: string) => list.replace(/,\n\s+/g, ", ").replace(/\n\s*/g, "");

function readArguments(value: unknown): { arguments: string; valid: boolean } {
  try {
    const parsed: unknown = typeof value === "string" ? JSON.parse(value) : value;
    return { arguments: JSON.stringify(parsed, null, 2).replace(NUMBERS, joinLines), valid: true };
  } catch {
    return { arguments: String(value), valid: false };
  }
}

/** The turn of each message: a turn of tools has a message for each call. Null when they do not match. */
function matchTurns(
  turns: readonly DumpTurn[],
  messages: readonly ChatMessage[],
): { turn: DumpTurn; failure: string | null }[] | null {
  const matched = turns.flatMap((turn) =>
    turn.role === "tool" && turn.failures
      ? turn.failures.map((failure) => ({ turn, failure }))
      : [{ turn, failure: null }],
  );
  const fits = matched.length === messages.length && matched.every(({ turn }, i) => turn.role === messages[i]!.role);
  return fits ? matched : null;
}

function findRewards(line: DumpLine, { start, end }: DumpTurn): ShownMessage["rewards"] {
  const within = ({ token_index }: { token_index: number }) => token_index >= start && token_index < end;
  return [
    ...line.tool_rewards.filter(within).map(({ value }) => ({ from: "tool" as const, value })),
    ...line.turn_scores.filter(within).map(({ value }) => ({ from: "turn" as const, value })),
  ];
}
