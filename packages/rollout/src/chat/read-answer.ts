import type { ToolSchema } from "@cria/core";
import type { ParsedToolCall, ParsedTurn, TurnReader } from "@cria/tools";
import { noCalls } from "@cria/tools/internal";
import type { ChatAnswerMessage, ChatToolCall } from "./chat-model.js";

/** What a turn thinks and says, white space and all. */
interface Spoken {
  reasoning: string;
  text: string;
}

/**
 * Reads a turn's text as the message that clients get. Thoughts go to `reasoning_content`, calls to `tool_calls`, the rest
 * to `content`, each without white space around it.
 *
 * A call that cannot be read is given to the client all the same, so that its framework answers the model with an error:
 * its arguments are then what the model wrote, which is no JSON object. Where not even a name can be made out, what the
 * model wrote stays at the content's end.
 * @param text the whole turn, control tokens written out, behind what the generation prompt says in its name (`<think>\n`).
 * @param reader how the model writes tool calls.
 * @param schemas the tools that the model saw.
 * @param makeId an id for the call at an index of the turn; called where the model gave none that can be used.
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
  // From the first call on, so that text before it and text behind it cannot join to something else.
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

/** What stands between calls only, `;` or `,`, says nothing. */
export function isFiller(text: string): boolean {
  return /^[\s;,]*$/.test(text);
}

/** The text around the calls may think again. */
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

/** The form of ids that every template takes: Mistral's want nine letters or digits. */
function isId(id: string): boolean {
  return /^[a-zA-Z0-9]{9}$/.test(id);
}

function writeArguments(call: ParsedToolCall): string {
  if (call.error === undefined) return JSON.stringify(call.arguments);
  const written = call.text ?? "";
  // A call that is wrong beside its arguments must not look like one that is right.
  return isObject(written) ? JSON.stringify(written) : written;
}

/** The name in the JSON of a call that is broken elsewhere. */
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
