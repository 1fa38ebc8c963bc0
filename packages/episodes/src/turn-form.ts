import { type ChatMessage, ConfigError, type ToolSchema } from "@cria/core";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import type { ParsedTurn } from "@cria/tools";

/**
 * Form of an assistant's turns in the template's input: the sampled text, or separate fields for calls (and
 * thoughts), which some templates require. "text" keeps sampled text unchanged and is used whenever the template
 * allows it.
 */
export type TurnForm = "text" | "structured";

interface TurnFormOptions {
  /** Tools of the conversation; empty if none. */
  schemas: readonly ToolSchema[];
  /** True if turns are rendered as in production (`use_inference_chat_template`). */
  production: boolean;
}

const WORDS = "probe-words-7f3a";
const ANSWER = "probe-answer-7f3a";
const ARGUMENT = "probe-argument-7f3a";
const CALL = "probe_call_7f3a";
/** gpt-oss's template refuses text with its own marks; for others they are plain text. */
const spoken: ChatMessage = { role: "assistant", content: `<|channel|>final<|message|>${WORDS}` };
const calling: ChatMessage = {
  role: "assistant",
  content: "",
  tool_calls: [{ type: "function", function: { name: CALL, arguments: { value: ARGUMENT } } }],
};
const question: ChatMessage = { role: "user", content: "probe" };
const toolAnswer: ChatMessage = { role: "tool", name: CALL, content: ANSWER };
const userAnswer: ChatMessage = { role: "user", content: ANSWER };
/** Some templates count turns, and complain only about later ones. */
const later: ChatMessage[] = [{ role: "assistant", content: "probe" }, question];

const known = new WeakMap<DeltaTokenizer, Map<string, TurnForm>>();

/**
 * Determines, once per template, in which form conversations can continue after an assistant's turn.
 * @throws ConfigError with the template's own complaint if they cannot: every conversation would fail.
 */
export function findTurnForm(tokenizer: DeltaTokenizer, { schemas, production }: TurnFormOptions): TurnForm {
  const forms = known.get(tokenizer) ?? new Map<string, TurnForm>();
  known.set(tokenizer, forms);
  const key = `${production}/${schemas.length > 0}`;
  const form = forms.get(key) ?? probe(tokenizer, schemas, production);
  forms.set(key, form);
  return form;
}

function probe(tokenizer: DeltaTokenizer, schemas: readonly ToolSchema[], production: boolean): TurnForm {
  const hasTools = schemas.length > 0;
  const answer = hasTools ? toolAnswer : userAnswer;
  if (!production) {
    // Single turns need no more than this, and most templates accept user turns.
    if (hasTools) require(tokenizer, "turn", () => tokenizer.renderDelta([answer], true), [ANSWER]);
    return "text";
  }
  const render = (turn: ChatMessage) => () => tokenizer.render([question, turn, answer, ...later], schemas, true);
  if (!closesWords(tokenizer) && complain(render(spoken), [WORDS, ANSWER]) === null) return "text";
  const structured = hasTools ? calling : { ...spoken, content: WORDS };
  require(tokenizer, "conversation", render(structured), [ANSWER, ...(hasTools ? [CALL, ARGUMENT] : [WORDS])]);
  return "structured";
}

/**
 * True if the template prints marks between an assistant's last word and the end of its turn (Kimi K3): the sampled text has them, and
 * the template would print them twice.
 */
function closesWords(tokenizer: DeltaTokenizer): boolean {
  try {
    const text = tokenizer.render([question, { role: "assistant", content: WORDS }, userAnswer], [], false);
    const behind = text.slice(text.lastIndexOf(WORDS) + WORDS.length);
    const ends = tokenizer.listEndTexts().map((end) => behind.indexOf(end));
    const found = ends.filter((at) => at >= 0);
    return found.length > 0 && /\S/.test(behind.slice(0, Math.min(...found)));
  } catch {
    // The template refuses such a conversation.
    return false;
  }
}

function require(tokenizer: DeltaTokenizer, what: string, render: () => string, parts: readonly string[]): void {
  const complaint = complain(render, parts);
  if (complaint === null) return;
  throw new ConfigError("cannot show the policy the answer to a turn", {
    code: "config/template-cannot-answer",
    subject: "chat template",
    expected: `a template that prints a ${what} with the answer of a tool or a user`,
    received: complaint,
    remedy:
      what === "conversation" && canContinue(tokenizer)
        ? "set multi_turn.use_inference_chat_template: false"
        : "use a model whose template knows tool messages, or rows without tools",
  });
}

function canContinue(tokenizer: DeltaTokenizer): boolean {
  return complain(() => tokenizer.renderDelta([toolAnswer], true), [ANSWER]) === null;
}

/** Why a rendering is unusable; null if it contains all parts. */
function complain(render: () => string, parts: readonly string[]): string | null {
  try {
    const text = render();
    const missing = parts.filter((part) => !text.includes(part));
    return missing.length === 0 ? null : `a rendering without ${missing.join(" and ")}`;
  } catch (error) {
    const { received, message } = error as { received?: string; message: string };
    const summary = message.split("\n", 1)[0]!;
    return received === undefined ? summary : `${summary}: ${received}`;
  }
}

/** An assistant's turn for templates that take its parts in separate fields. */
export function structureTurn(parsed: ParsedTurn | undefined, text: string): ChatMessage {
  const { content, reasoning_content } = parsed?.message ?? { content: parsed?.content ?? text };
  return {
    role: "assistant",
    content,
    ...(reasoning_content === undefined ? {} : { reasoning_content }),
    ...(parsed && parsed.calls.length > 0
      ? {
          tool_calls: parsed.calls.map((call) => ({
            ...nameId(call.id, "id"),
            type: "function" as const,
            // An unreadable call is kept, because it has an answer.
            function: { name: call.name || "unknown", arguments: call.arguments },
          })),
        }
      : {}),
  };
}

/**
 * The call's id under `key`, if it has the form that every template accepts (Mistral's demand nine letters or
 * digits). Without ids, the tokenizer numbers calls and answers consistently.
 */
export function nameId<K extends string>(id: string | undefined, key: K): Partial<Record<K, string>> {
  return id !== undefined && /^[a-zA-Z0-9]{9}$/.test(id) ? ({ [key]: id } as Record<K, string>) : {};
}
