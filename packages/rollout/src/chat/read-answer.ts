import type { ToolSchema } from "@cria/core";
import type { ParsedToolCall, ParsedTurn, TurnReader } from "@cria/tools";
import { noCalls } from "@cria/tools/internal";
import type { ChatAnswerMessage, ChatToolCall } from "./chat-model.js";

/** Thoughts and text of a turn, white space included. */
interface Spoken {
  reasoning: string;
  text: string;
}

/**
 * Reads a turn's text as the message for clients: thoughts in `reasoning_content`, calls in `tool_calls`, the rest
 * in `content`, each trimmed.
 *
 * An unreadable call is passed to the client too, so that its framework answers the model with an error: its
 * arguments are then the model's raw text, which is no JSON object. If not even a name can be read, the raw text
 * stays at the end of `content`.
 * @param text the whole turn, control tokens written out, after the part in the generation prompt (`<think>\n`).
 * @param reader tool-call format of the policy.
 * @param schemas the tools that the model saw.
 * @param makeId makes an id for the call at an index of the turn; called if the model gave no usable one.
 */
export function readAnswer(
  text: string,
  reader: TurnReader,
  schemas: readonly ToolSchema[],
  makeId: (index: number) => string,
): { message: ChatAnswerMessage } {
  const before: Spoken = { reasoning: "", text: "" };
  const splitter = reader.split((kind, piece) => {
    before[kind] += piece;
  });
  splitter.push(text);
  const rest = text.slice(splitter.finish());
  // Parse from the first call on, so that text before and after it cannot combine.
  const parsed: ParsedTurn = rest === "" ? { content: "", calls: [] } : reader.parse(rest, schemas);
  const after = splitRest(parsed);
  const calls = parsed.calls.map((call) => ({ call, name: call.name || findName(call.text ?? "") }));
  const nameless = new Set(calls.filter(({ name }) => name === "").map(({ call }) => call.text ?? ""));
  const said = before.text + after.text;
  const content = [parsed.calls.length > 0 && isFiller(said) ? "" : said, ...nameless].join("").trim();
  const reasoning = (before.reasoning + after.reasoning).trim();
  const toolCalls = toToolCalls(
    calls.filter(({ name }) => name !== ""),
    makeId,
  );
  return {
    message: {
      role: "assistant",
      content,
      ...(reasoning === "" ? {} : { reasoning_content: reasoning }),
      ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
    },
  };
}

/** True if a text holds only separators of calls: white space, `;`, `,`. */
export function isFiller(text: string): boolean {
  return /^[\s;,]*$/.test(text);
}

/** Splits the text around the calls, which may contain thoughts again. */
function splitRest({ content, message }: ParsedTurn): Spoken {
  if (message) return { reasoning: `\n${message.reasoning_content ?? ""}`, text: `\n${message.content}` };
  const rest: Spoken = { reasoning: "", text: "" };
  const splitter = noCalls.split((kind, piece) => {
    rest[kind] += piece;
  });
  splitter.push(content);
  rest.text += content.slice(splitter.finish());
  return rest;
}

function toToolCalls(
  calls: readonly { call: ParsedToolCall; name: string }[],
  makeId: (index: number) => string,
): ChatToolCall[] {
  const used = new Set<string>();
  return calls.map(({ call, name }, index) => {
    const id = call.id !== undefined && isId(call.id) && !used.has(call.id) ? call.id : makeId(index);
    used.add(id);
    return { id, type: "function", function: { name, arguments: writeArguments(call) } };
  });
}

/** True for an id of nine letters or digits, the form that every template accepts (Mistral's demand it). */
function isId(id: string): boolean {
  return /^[a-zA-Z0-9]{9}$/.test(id);
}

function writeArguments(call: ParsedToolCall): string {
  if (call.error === undefined) return JSON.stringify(call.arguments);
  const written = call.text ?? "";
  // A call with another error must not look valid, even if its arguments are.
  return isObject(written) ? JSON.stringify(written) : written;
}

/** Finds the name in a call whose JSON is broken elsewhere. */
function findName(text: string): string {
  return /"(?:name|function)"\s{0,20}:\s{0,20}"([^"\\]{1,200})"/.exec(text)?.[1] ?? "";
}

function isObject(json: string): boolean {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
