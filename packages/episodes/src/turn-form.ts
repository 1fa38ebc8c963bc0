import { type ChatMessage, ConfigError, type ToolSchema } from "@cria/core";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import type { ParsedTurn } from "@cria/tools";

/**
 * How a template is given an assistant's turns: as the text that was sampled, or with its calls (and thoughts) in fields of
 * their own, as some templates insist. As text, what was sampled stays as it was wherever the template allows.
 */
export type TurnForm = "text" | "structured";

interface TurnFormOptions {
  /** What the conversation's tools are; empty when it has none. */
  schemas: readonly ToolSchema[];
  /** Whether turns are rendered as production would (`use_inference_chat_template`). */
  production: boolean;
}

const WORDS = "probe-words-7f3a";
const ANSWER = "probe-answer-7f3a";
const ARGUMENT = "probe-argument-7f3a";
const CALL = "probe_call_7f3a";
/** gpt-oss's template refuses text with its own marks; to others they are text. */
const spoken: ChatMessage = { role: "assistant", content: `<|channel|>final<|message|>${WORDS}` };
const calling: ChatMessage = {
  role: "assistant",
  content: "",
  tool_calls: [{ type: "function", function: { name: CALL, arguments: { value: ARGUMENT } } }],
};
const question: ChatMessage = { role: "user", content: "probe" };
const toolAnswer: ChatMessage = { role: "tool", name: CALL, content: ANSWER };
const userAnswer: ChatMessage = { role: "user", content: ANSWER };
/** Some templates count turns, and complain only about what comes later. */
const later: ChatMessage[] = [{ role: "assistant", content: "probe" }, question];

const known = new WeakMap<DeltaTokenizer, Map<string, TurnForm>>();

/**
 * Finds out, once for each template, whether conversations can go on after an assistant's turn, and in which form.
 * @throws ConfigError with the template's own complaint when they cannot: every conversation would fail.
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
    // A single turn needs no more, and most templates take users' turns.
    if (hasTools) require(tokenizer, "turn", () => tokenizer.renderDelta([answer], true), [ANSWER]);
    return "text";
  }
  const render = (turn: ChatMessage) => () => tokenizer.render([question, turn, answer, ...later], schemas, true);
  if (complain(render(spoken), [WORDS, ANSWER]) === null) return "text";
  const structured = hasTools ? calling : { ...spoken, content: WORDS };
  require(tokenizer, "conversation", render(structured), [ANSWER, ...(hasTools ? [CALL, ARGUMENT] : [WORDS])]);
  return "structured";
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

/** Why a rendering cannot be used; null when it holds all parts. */
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

/** An assistant's turn as a template with fields for its parts is given it. */
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
            // A call that could not be read has its answer all the same.
            function: { name: call.name || "unknown", arguments: call.arguments },
          })),
        }
      : {}),
  };
}

/**
 * The id of a call, where the model gave one of the form that every template takes: Mistral's want nine letters or digits.
 * Without it the tokenizer numbers calls and answers alike.
 */
export function nameId<K extends string>(id: string | undefined, key: K): Partial<Record<K, string>> {
  return id !== undefined && /^[a-zA-Z0-9]{9}$/.test(id) ? ({ [key]: id } as Record<K, string>) : {};
}
