import { type ChatMessage, TokenizerError, type ToolSchema } from "@cria/core";
import { Template } from "@huggingface/jinja";

export interface RenderOptions {
  tools?: readonly ToolSchema[];
  addGenerationPrompt?: boolean;
  /** Further variables of the template (`apply_chat_template_kwargs`), for example `{ enable_thinking: false }`. */
  kwargs?: Record<string, unknown>;
}

/** A model's chat template (Jinja, as GGUF files carry it). */
export class ChatTemplate {
  private readonly template: Template;

  /** @throws TokenizerError when the template does not parse. */
  constructor(
    readonly source: string,
    private readonly specialTokens: { bos_token?: string; eos_token?: string } = {},
  ) {
    try {
      this.template = new Template(source);
    } catch (cause) {
      throw new TokenizerError("does not parse", {
        code: "tokenizer/bad-template",
        subject: "chat template",
        expected: "a Jinja template",
        received: (cause as Error).message,
        cause,
      });
    }
  }

  /** @throws TokenizerError with the template's own complaint, for example about the order of roles. */
  render(messages: readonly ChatMessage[], options: RenderOptions = {}): string {
    try {
      return this.template.render({
        bos_token: "",
        eos_token: "",
        ...this.specialTokens,
        ...options.kwargs,
        messages: messages.map(toTemplateMessage),
        tools: options.tools && options.tools.length > 0 ? options.tools : undefined,
        add_generation_prompt: options.addGenerationPrompt ?? false,
      });
    } catch (cause) {
      throw new TokenizerError("cannot render this conversation", {
        code: "tokenizer/render-failed",
        subject: "chat template",
        expected: "messages that the template accepts",
        received: `${(cause as Error).message} (roles: ${messages.map((m) => m.role).join(", ")})`,
        cause,
      });
    }
  }
}

/** Templates print arguments as JSON themselves, so they get objects where the text parses. */
function toTemplateMessage(message: ChatMessage): Record<string, unknown> {
  if (!message.tool_calls) return { ...message };
  const tool_calls = message.tool_calls.map((call) => ({
    type: "function",
    ...call,
    function: { ...call.function, arguments: parseArguments(call.function.arguments) },
  }));
  return { ...message, tool_calls };
}

function parseArguments(value: Record<string, unknown> | string): unknown {
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}
