import { DataError, EngineError } from "@cria/core";
import { jsonSchemaToGrammar, type ToolFormat, toolCallGrammar } from "@cria/tools";
import { thinkingTags } from "@cria/tools/internal";
import type { ChatRequest } from "./chat-model.js";

export interface GrammarContext {
  /** Tool-call format of the policy. */
  format: ToolFormat;
  /** The part of the answer that the generation prompt already contains. */
  opening: string;
  /** Source of the chat template; tells whether models with it think. */
  template: string;
}

/**
 * Grammar (GBNF) for a request that demands a tool call or a JSON answer. Thinking models may think first.
 * @returns null if the answer is unconstrained.
 * @throws DataError for a demand that no grammar can express.
 */
export function makeGrammar(request: ChatRequest, { format, opening, template }: GrammarContext): string | null {
  const answer = makeCallGrammar(request, format) ?? makeFormatGrammar(request);
  if (answer === null) return null;
  // A template may put its tags together from parts.
  const tag = thinkingTags.find(({ open }) => template.includes(open) || opening.includes(open));
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

/** Turns the engine's refusal of a grammar into an error about the request; null for other errors. */
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

/** Allows thoughts up to the first closing tag. @param isOpen true if the generation prompt has opened them. */
function allowThinking(grammar: string, { open, close }: { open: string; close: string }, isOpen: boolean): string {
  const [first, second] = [close[0]!, close[1]!];
  const not = (char: string) => `[^${char === "[" ? "\\[" : char}]`;
  const thoughts = `thoughts ::= (${not(first)} | ${JSON.stringify(first)} ${not(second)})* ${JSON.stringify(close)} [ \\n]*`;
  const root = isOpen ? "root ::= thoughts the-answer" : `root ::= (${JSON.stringify(open)} thoughts)? the-answer`;
  return `${root}\n${thoughts}\n${renameRoot(grammar)}`;
}

/** Renames the rule `root`, except inside literals and character classes. */
function renameRoot(grammar: string): string {
  const parts = /"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|(?<![\w-])root(?![\w-])/g;
  return grammar.replace(parts, (part) => (part === "root" ? "the-answer" : part));
}
