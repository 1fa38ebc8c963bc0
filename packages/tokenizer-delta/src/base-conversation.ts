import { type ChatMessage, TokenizerError, type ToolSchema } from "@cria/core";
import type { RenderOptions } from "./chat-template.js";
import { showImages } from "./image-marks.js";
import { makeMark } from "./make-mark.js";

/**
 * Words that no template and no message contains: their places in the output show what a template does with a message.
 */
const SYSTEM = makeMark();
const USER = makeMark();
const ASSISTANT = makeMark();
const ARGUMENT = makeMark();
const FOLLOW_UP = makeMark();
const TOOL = makeMark();

type Render = (messages: readonly ChatMessage[], options: RenderOptions) => string;

interface Opening {
  messages: ChatMessage[];
  tools: ToolSchema[];
}

const system: ChatMessage = { role: "system", content: SYSTEM };
const user: ChatMessage = { role: "user", content: USER };
const tool: ToolSchema = {
  type: "function",
  function: { name: TOOL, description: "", parameters: { type: "object", properties: {} } },
};

/**
 * Beginnings of the fixed conversation, the usual one first. Some templates refuse a system message or print it again
 * before the last user message; some cannot render without tools.
 */
const openings: Opening[] = [
  { messages: [system, user], tools: [] },
  { messages: [user], tools: [] },
  { messages: [system, user], tools: [tool] },
  { messages: [user], tools: [tool] },
];

/** The template's text after an assistant's words when messages follow. */
export interface FollowUp {
  /**
   * The text after the assistant's last word: the end of its turn, the messages, and the generation prompt if
   * requested.
   */
  text: string;
  /**
   * Key of the base conversation's shape: follow-ups of one shape end the assistant's turn in the same way, except for
   * ids.
   */
  shape: string;
  /** The text between the assistant's last word and the first word of `messages`. */
  renderTransition(): string;
}

/** The template's text of an assistant's message. */
export interface AssistantText {
  text: string;
  /** True if the text follows the whole generation prompt; otherwise it follows the prompt without its opening. */
  continuesOpening: boolean;
}

/**
 * A fixed conversation of one system, one user and one assistant message that replaces the conversation before a delta.
 * A template's text after the assistant's turn does not depend on the texts before it, so it is rendered once for each
 * delta, at a cost that does not grow with the conversation.
 */
export class BaseConversation {
  private readonly openings = new Map<"user" | "tool", string>();
  private readonly dropped = new Map<"user" | "tool", string>();

  constructor(private readonly render: Render) {}

  /**
   * The template's text after an assistant's turn when `messages` follow it. Before tool messages that turn contains
   * the calls that they answer: some templates print answers inside of it, or by the call's name.
   * @param messages at least one, the first not of the assistant.
   * @throws TokenizerError when the template accepts no such conversation.
   */
  renderAfterAssistant(messages: readonly ChatMessage[], addGenerationPrompt: boolean): FollowUp {
    const first = messages[0]!;
    return this.tryAll(openings, (opening, o) =>
      this.tryAll(listTurnsBefore(messages), (turn, t) => {
        const before = [...opening.messages, turn];
        return {
          text: this.renderAfter(turn, [...before, ...messages], { tools: opening.tools, addGenerationPrompt }),
          shape: `${o}/${t}/${first.role}`,
          renderTransition: () => this.renderTransition(turn, before, first, opening.tools),
        };
      }),
    );
  }

  /**
   * The template's text of an assistant message after its generation prompt, up to the end of the text.
   * @param after role of the previous message.
   */
  renderAssistant(message: ChatMessage, after: "user" | "tool" = "user"): AssistantText {
    return this.tryBefore(after, (before, tools) => {
      const prompt = this.render(before, { tools, addGenerationPrompt: true });
      const text = this.render([...before, message], { tools });
      if (text.startsWith(prompt)) return { text: text.slice(prompt.length), continuesOpening: true };
      const header = prompt.slice(0, prompt.length - this.renderOpening(after).length);
      if (!text.startsWith(header)) throw describeOddity("does not print an assistant turn after its prompt", text);
      return { text: text.slice(header.length), continuesOpening: false };
    });
  }

  /**
   * The part of the generation prompt that belongs to the assistant's turn (`<think>` and a newline, in templates that
   * make the model reason), and that the template does not print before a message's own text. Often empty.
   */
  renderOpening(after: "user" | "tool" = "user"): string {
    const known = this.openings.get(after) ?? this.findOpening(after);
    this.openings.set(after, known);
    return known;
  }

  /**
   * The part of the generation prompt that disappears from a turn once others follow it: its opening, if a template
   * prints that (or an empty reasoning instead of it) only in the newest turn. Often empty.
   */
  renderDropped(after: "user" | "tool" = "user"): string {
    const known = this.dropped.get(after) ?? this.findDropped(after);
    this.dropped.set(after, known);
    return known;
  }

  private findDropped(after: "user" | "tool"): string {
    return this.tryBefore(after, (before, tools) => {
      const prompt = this.render(before, { tools, addGenerationPrompt: true });
      const turns: ChatMessage[] = [
        { role: "assistant", content: ASSISTANT },
        { role: "user", content: FOLLOW_UP },
      ];
      const text = this.render([...before, ...turns], { tools });
      const header = text.slice(0, Math.max(0, text.lastIndexOf(ASSISTANT)));
      let common = 0;
      while (common < header.length && header[common] === prompt[common]) common++;
      return common < this.render(before, { tools }).length ? "" : prompt.slice(common);
    });
  }

  private findOpening(after: "user" | "tool"): string {
    return this.tryBefore(after, (before, tools) => {
      const prompt = this.render(before, { tools, addGenerationPrompt: true });
      const text = this.render([...before, { role: "assistant", content: ASSISTANT }], { tools });
      // The turn before a tool's answer may contain the same word.
      const header = text.slice(0, Math.max(0, text.lastIndexOf(ASSISTANT)));
      if (header.startsWith(prompt)) return "";
      if (header === "" || !prompt.startsWith(header))
        throw describeOddity("does not print an assistant turn after its prompt", text);
      return prompt.slice(header.length);
    });
  }

  private tryBefore<T>(after: "user" | "tool", attempt: (before: ChatMessage[], tools: ToolSchema[]) => T): T {
    const answer: ChatMessage = { role: "tool", name: "call", tool_call_id: "base07f3a", content: FOLLOW_UP };
    return this.tryAll(openings, (opening) =>
      this.tryAll(after === "tool" ? listTurnsBefore([answer]) : [null], (turn) =>
        attempt(turn ? [...opening.messages, turn, answer] : opening.messages, opening.tools),
      ),
    );
  }

  private renderTransition(turn: ChatMessage, before: ChatMessage[], first: ChatMessage, tools: ToolSchema[]): string {
    const text = this.renderAfter(turn, [...before, { ...first, content: FOLLOW_UP }], { tools });
    const end = text.indexOf(FOLLOW_UP);
    if (end < 0) throw describeOddity(`drops the text of a ${first.role} message`, text);
    return text.slice(0, end);
  }

  /** The rendered text after the last word of `turn`. */
  private renderAfter(turn: ChatMessage, messages: ChatMessage[], options: RenderOptions): string {
    const text = this.render(messages, options);
    const lastWord = turn.tool_calls ? ARGUMENT : ASSISTANT;
    const at = text.lastIndexOf(lastWord);
    if (at < 0) throw describeOddity("drops the text or the calls of an assistant message", text);
    const rest = text.slice(at + lastWord.length);
    const printed = text.split(lastWord).length - 1;
    if (printed > (turn.tool_calls?.length ?? 1) || rest.includes(SYSTEM) || rest.includes(USER) || rest.includes(TOOL))
      throw describeOddity("prints earlier messages or tools again after an assistant turn", text);
    return rest;
  }

  /** The first attempt that succeeds. @throws the first attempt's error when none does. */
  private tryAll<I, O>(items: readonly I[], attempt: (item: I, index: number) => O): O {
    let first: unknown;
    for (const [i, item] of items.entries()) {
      try {
        return attempt(item, i);
      } catch (error) {
        first ??= error;
      }
    }
    throw first;
  }
}

/** Assistant turns that `messages` may follow, the most likely first. */
function listTurnsBefore(messages: readonly ChatMessage[]): ChatMessage[] {
  const plain: ChatMessage = { role: "assistant", content: ASSISTANT };
  const next = messages.findIndex((message) => message.role !== "tool");
  const answers = next < 0 ? messages : messages.slice(0, next);
  if (answers.length === 0) return [plain];
  const tool_calls = answers.map((answer) => ({
    ...(answer.tool_call_id === undefined ? {} : { id: answer.tool_call_id }),
    type: "function" as const,
    function: { name: answer.name ?? "call", arguments: { value: ARGUMENT } },
  }));
  return [{ role: "assistant", content: "", tool_calls }, plain];
}

function describeOddity(what: string, received: string): TokenizerError {
  return new TokenizerError(what, {
    code: "tokenizer/not-incremental",
    subject: "chat template",
    expected: "a template that prints each message once, in order",
    // Replaces the words by their roles: they are secret, or a message could contain them.
    received: JSON.stringify(nameMarks(received).slice(-200)),
    remedy: "use a template whose assistant turns do not change when later messages arrive",
  });
}

function nameMarks(text: string): string {
  const names = { SYSTEM, USER, ASSISTANT, ARGUMENT, FOLLOW_UP, TOOL };
  return Object.entries(names).reduce((named, [name, mark]) => named.replaceAll(mark, `(${name})`), showImages(text));
}
