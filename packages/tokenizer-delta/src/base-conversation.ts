import { type ChatMessage, TokenizerError, type ToolSchema } from "@cria/core";
import type { RenderOptions } from "./chat-template.js";

/** Texts that no template prints of itself: where they come out again shows what a template does with a message. */
const SYSTEM = "base-system-7f3a";
const USER = "base-user-7f3a";
const ASSISTANT = "base-assistant-7f3a";
const TOOL = "base_tool_7f3a";

type Render = (messages: readonly ChatMessage[], options: RenderOptions) => string;

interface Variant {
  before: ChatMessage[];
  tools: ToolSchema[];
}

const system: ChatMessage = { role: "system", content: SYSTEM };
const user: ChatMessage = { role: "user", content: USER };
const tool: ToolSchema = {
  type: "function",
  function: { name: TOOL, description: "", parameters: { type: "object", properties: {} } },
};

/**
 * Ways to begin the fixed conversation, the usual one first. Some templates refuse a system message or print it again
 * before the last user message; some cannot render without tools.
 */
const variants: Variant[] = [
  { before: [system, user], tools: [] },
  { before: [user], tools: [] },
  { before: [system, user], tools: [tool] },
  { before: [user], tools: [tool] },
];

/**
 * A fixed conversation of one system, one user and one assistant message that stands for whatever came before a delta.
 * What a template prints after the assistant's text does not depend on the texts before it, so it is rendered once for
 * each delta at a cost that does not grow with the conversation.
 */
export class BaseConversation {
  constructor(private readonly render: Render) {}

  /**
   * What the template prints after an assistant's text when `messages` follow it: the end of that turn, the messages,
   * and the next generation prompt if wanted.
   * @throws TokenizerError when the template accepts no such conversation.
   */
  renderAfterAssistant(messages: readonly ChatMessage[], addGenerationPrompt: boolean): string {
    return this.tryVariants(({ before, tools }) => {
      const text = this.render([...before, { role: "assistant", content: ASSISTANT }, ...messages], {
        tools,
        addGenerationPrompt,
      });
      const at = text.indexOf(ASSISTANT);
      if (at < 0) throw describeOddity("drops the text of an assistant message", text);
      const rest = text.slice(at + ASSISTANT.length);
      if (rest.includes(SYSTEM) || rest.includes(USER) || rest.includes(TOOL))
        throw describeOddity("prints earlier messages or tools again after an assistant turn", text);
      return rest;
    });
  }

  /** What the template prints of an assistant message after its generation prompt, up to the end of the text. */
  renderAssistant(message: ChatMessage): string {
    return this.tryVariants(({ before, tools }) => {
      const prompt = this.render(before, { tools, addGenerationPrompt: true });
      const text = this.render([...before, message], { tools });
      if (!text.startsWith(prompt)) throw describeOddity("does not print an assistant turn after its prompt", text);
      return text.slice(prompt.length);
    });
  }

  private tryVariants(attempt: (variant: Variant) => string): string {
    let first: unknown;
    for (const variant of variants) {
      try {
        return attempt(variant);
      } catch (error) {
        first ??= error;
      }
    }
    throw first;
  }
}

function describeOddity(what: string, received: string): TokenizerError {
  return new TokenizerError(what, {
    code: "tokenizer/not-incremental",
    subject: "chat template",
    expected: "a template that prints each message once, in order",
    received: JSON.stringify(received.slice(-200)),
    remedy: "use a template whose assistant turns do not change when later messages arrive",
  });
}
