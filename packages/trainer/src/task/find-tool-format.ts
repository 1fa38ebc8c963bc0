import type { ChatMessage, ToolSchema } from "@cria/core";
import type { GgufHeader } from "@cria/engine";
import { readArray } from "@cria/engine/internal";
import { ChatTemplate, type DeltaTokenizer } from "@cria/tokenizer-delta";
import type { ToolFormat } from "@cria/tools";
import { listToolFormats } from "@cria/tools/internal";

/** Renders a conversation with a model's chat template. */
export type Render = (messages: readonly ChatMessage[], tools: readonly ToolSchema[], prompt: boolean) => string;

export interface TemplateAbilities {
  /**
   * Value for `multi_turn.format`: the format whose parser reads the calls that the template prints. If the template
   * prints none: the format whose calls begin with a token of the model, or whose example is in the instructions. Null
   * if there is none.
   */
  format: string | null;
  /** True if the template tells the model which tools there are. */
  listsTools: boolean;
  /** True if it prints tools' answers: conversations with tools need it. */
  showsAnswers: boolean;
}

const NAME = "probe_call_7f3a";
const VALUE = "probe-argument-7f3a";
const ANSWER = "probe-answer-7f3a";
const schema: ToolSchema = {
  type: "function",
  function: {
    name: NAME,
    description: "A probe.",
    parameters: { type: "object", properties: { key: { type: "string", description: "A key." } }, required: ["key"] },
  },
};
const question: ChatMessage = { role: "user", content: "probe" };
const calling: ChatMessage = {
  role: "assistant",
  content: "",
  tool_calls: [{ id: "probe07f3", type: "function", function: { name: NAME, arguments: { key: VALUE } } }],
};
const answer: ChatMessage = { role: "tool", name: NAME, tool_call_id: "probe07f3", content: ANSWER };

/** Finds out what a model's chat template can do with tools. */
export function probeModel(tokenizer: DeltaTokenizer): TemplateAbilities {
  const specialTexts = tokenizer.tokenizer.listSpecialTokens().map(({ text }) => text);
  return probeTemplate((...given) => tokenizer.render(...given), tokenizer.listEndTexts(), specialTexts);
}

/**
 * Finds out what a chat template can do with tools, by rendering a call and having every parser read it.
 * @param endTexts texts of the tokens that end a turn.
 * @param specialTexts texts of the model's special tokens.
 */
export function probeTemplate(
  render: Render,
  endTexts: readonly string[],
  specialTexts: readonly string[] = [],
): TemplateAbilities {
  const prompt = attempt(() => render([question], [schema], true)) ?? "";
  const called = attempt(() => render([question, calling], [schema], false));
  const answered = attempt(() => render([question, calling, answer], [schema], true));
  const listsTools = prompt.includes(NAME);
  const printed = called === null ? null : findFormat(cutTurn(called, prompt, endTexts));
  return {
    format: printed ?? (listsTools ? findMarkedFormat(specialTexts, prompt) : null),
    listsTools,
    showsAnswers: answered?.includes(ANSWER) ?? false,
  };
}

/** llama.cpp's `enum llama_token_type`: tokens that a text is cut at. */
const CUTTING = [3, 4]; // control, user-defined

/**
 * The same of a model's file, by its header alone: which tokens end a turn is then what the template prints behind one.
 * @param kwargs variables of the template.
 * @returns null without a chat template, or with one that does not parse.
 */
export function probeHeader({ metadata }: GgufHeader, kwargs: Record<string, unknown>): TemplateAbilities | null {
  const get = (key: string) => metadata.get(`tokenizer.${key}`);
  const source = get("chat_template")?.value;
  if (typeof source !== "string") return null;
  const texts = readArray(get("ggml.tokens")).map(String);
  const textOf = (name: string) => texts[Number(get(`ggml.${name}_token_id`)?.value ?? -1)] ?? "";
  const template = attempt(() => new ChatTemplate(source, { bos_token: textOf("bos"), eos_token: textOf("eos") }));
  if (template === null) return null;
  const render: Render = (messages, tools, addGenerationPrompt) =>
    template.render(messages, { kwargs, tools, addGenerationPrompt });
  const spoken = attempt(() => render([question, { role: "assistant", content: VALUE }], [], false)) ?? "";
  const behind = spoken.slice(spoken.lastIndexOf(VALUE) + VALUE.length).trim();
  const types = readArray(get("ggml.token_type"));
  return probeTemplate(
    render,
    [behind, textOf("eos"), textOf("eot"), textOf("eom")],
    texts.filter((_, id) => CUTTING.includes(Number(types[id]))),
  );
}

/** Extracts the assistant's text from a rendering: the part after the prompt, without the end of the turn. */
export function cutTurn(rendered: string, prompt: string, endTexts: readonly string[]): string {
  // A prompt may open a block, such as thinking, that the rendering of a whole turn omits: only the common prefix is
  // cut.
  let start = 0;
  while (start < prompt.length && rendered[start] === prompt[start]) start++;
  // Two marks may begin alike (<think>, <tool_call>): go back to the beginning of the mark.
  if (start < prompt.length) while (start > 0 && !"\n>]".includes(rendered[start - 1]!)) start--;
  let text = rendered.slice(start).trimEnd();
  for (let end: string | undefined; ; text = text.slice(0, -end.length).trimEnd()) {
    end = endTexts.find((candidate) => candidate !== "" && text.endsWith(candidate));
    if (end === undefined) return text;
  }
}

function findFormat(turn: string): string | null {
  const reads = ({ parse }: ToolFormat) => {
    const { calls } = parse(turn, [schema]);
    const [call] = calls;
    return calls.length === 1 && !call!.error && call!.name === NAME && call!.arguments["key"] === VALUE;
  };
  return listToolFormats().find(reads)?.name ?? null;
}

/**
 * Finds the only format whose calls begin with one of these texts. If several or none do, it is the only one with an
 * example in the prompt; null if that is not unique.
 */
function findMarkedFormat(texts: readonly string[], prompt: string): string | null {
  const begins = ({ callStart }: ToolFormat, text: string) => callStart?.look(text, 0, false) === "call";
  const all = listToolFormats();
  const marked = all.filter((format) => {
    // In some formats any text can be a call.
    return !begins(format, "a") && texts.some((text) => begins(format, text));
  });
  if (marked.length === 1) return marked[0]!.name;
  const shown = (marked.length > 0 ? marked : all).filter(({ example }) => example?.test(prompt));
  return shown.length === 1 ? shown[0]!.name : null;
}

function attempt<T>(work: () => T): T | null {
  try {
    return work();
  } catch {
    // The template refuses such a conversation.
    return null;
  }
}
