import { DataError, EngineError } from "@cria/core";
import { jsonSchemaToGrammar, type ToolFormat, toolCallGrammar } from "@cria/tools";
import { thinkingTags } from "@cria/tools/internal";
import type { ChatRequest } from "./chat-model.js";

export interface GrammarContext {
  /** How the model writes tool calls. */
  format: ToolFormat;
  /** What the generation prompt says in the model's name. */
  opening: string;
  /** Source of the chat template: whether models of it think. */
  template: string;
}

/**
 * The grammar (GBNF) that a request asks for: a call of a tool, or an answer in JSON. Models that think may do so first.
 * @returns null where the model may say anything.
 * @throws DataError for what no grammar can say.
 */
export function makeGrammar(request: ChatRequest, { format, opening, template }: GrammarContext): string | null {
  const answer = makeCallGrammar(request, format) ?? makeFormatGrammar(request);
  if (answer === null) return null;
  const tag = thinkingTags.find(({ open }) => template.includes(open));
  if (!tag) return answer;
  const isOpen = opening.lastIndexOf(tag.open) > opening.lastIndexOf(tag.close);
  return allowThinking(answer, tag, isOpen);
}

function makeCallGrammar({ toolChoice = "auto", tools = [] }: ChatRequest, format: ToolFormat): string | null {
  if (toolChoice === "auto" || toolChoice === "none") return null;
  const named = typeof toolChoice === "object" ? { name: toolChoice.name } : {};
  const grammar = format.grammar === null ? null : toolCallGrammar(format, tools, named);
  if (grammar !== null) return grammar;
  throw new DataError("cannot be enforced", {
    code: "chat/bad-request",
    subject: "tool_choice",
    expected: "auto or none: calls of this model are written in a form that has no grammar",
    received: typeof toolChoice === "object" ? toolChoice.name : toolChoice,
  });
}

function makeFormatGrammar({ responseFormat }: ChatRequest): string | null {
  if (responseFormat === undefined || responseFormat.type === "text") return null;
  try {
    return jsonSchemaToGrammar(responseFormat.type === "json_object" ? { type: "object" } : responseFormat.schema);
  } catch (cause) {
    if (!(cause instanceof DataError)) throw cause;
    const { expected, received, remedy } = cause;
    throw new DataError("cannot be enforced", {
      code: "chat/bad-request",
      subject: `response_format: ${cause.subject}`,
      ...{ expected, received, remedy },
      cause,
    });
  }
}

/** What the engine says of a grammar that it cannot follow, as an error of the request; null for other errors. */
export function describeGrammarError(error: unknown): DataError | null {
  if (!(error instanceof EngineError) || !/^engine\/(bad-grammar|grammar-)/.test(error.code)) return null;
  const { expected, received, remedy } = error;
  return new DataError("cannot be followed", {
    code: "chat/bad-request",
    subject: "response_format or tool_choice",
    ...{ expected, received, remedy },
    cause: error,
  });
}

/** Thoughts end at the first closing tag. @param isOpen whether the generation prompt has begun them. */
function allowThinking(grammar: string, { open, close }: { open: string; close: string }, isOpen: boolean): string {
  const [first, second] = [close[0]!, close[1]!];
  const not = (char: string) => `[^${char === "[" ? "\\[" : char}]`;
  const thoughts = `thoughts ::= (${not(first)} | ${JSON.stringify(first)} ${not(second)})* ${JSON.stringify(close)} [ \\n]*`;
  const root = isOpen ? "root ::= thoughts the-answer" : `root ::= (${JSON.stringify(open)} thoughts)? the-answer`;
  return `${root}\n${thoughts}\n${renameRoot(grammar)}`;
}

/** Literals and character classes may hold the word too. */
function renameRoot(grammar: string): string {
  const parts = /"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|(?<![\w-])root(?![\w-])/g;
  return grammar.replace(parts, (part) => (part === "root" ? "the-answer" : part));
}
