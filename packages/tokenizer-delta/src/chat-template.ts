import { type ChatMessage, TokenizerError, type ToolSchema } from "@cria/core";
import { cutAtMarks, markImages, showImages } from "./image-marks.js";
import { parseTemplate } from "./parse-template.js";
import { placeMarks } from "./place-marks.js";
import { defaultRenderLimits, type RenderLimits, TemplateLimitError } from "./render-limits.js";
import { TemplateForms } from "./template-forms.js";
import { callForms, type MessageForm, pairCallsWithAnswers, toTemplateMessage } from "./template-message.js";

export interface RenderOptions {
  tools?: readonly ToolSchema[];
  addGenerationPrompt?: boolean;
  /** Additional variables of the template (`apply_chat_template_kwargs`), for example `{ enable_thinking: false }`. */
  kwargs?: Record<string, unknown>;
}

/** Most characters of a template's own error message in our error. */
const longestComplaint = 1000;

/** A model's chat template (Jinja, from its GGUF file), rendered under limits of time and size. */
export class ChatTemplate {
  private readonly template: ReturnType<typeof parseTemplate>;
  private readonly forms = new TemplateForms((messages, form) =>
    this.renderVariables(this.fillVariables(messages, {}, form)),
  );
  /** A template that exceeded a limit is not tried again: each attempt would take as long. */
  private exceeded: TemplateLimitError | undefined;

  /** True if its text may differ from one moment to the next. */
  get readsClock(): boolean {
    return this.source.includes("strftime_now");
  }

  /**
   * @param specialTokens texts of the model's special tokens, "" for those that it lacks; `DeltaTokenizer.forModel`
   * provides them.
   * @throws TokenizerError when the template does not parse, or prints one of these texts that was not given.
   */
  constructor(
    readonly source: string,
    private readonly specialTokens: { bos_token?: string; eos_token?: string } = {},
    limits: RenderLimits = defaultRenderLimits,
  ) {
    for (const name of ["bos_token", "eos_token"] as const) {
      if (specialTokens[name] !== undefined || !new RegExp(`\\b${name}\\b`).test(source)) continue;
      throw new TokenizerError(`prints ${name}, which was not given`, {
        code: "tokenizer/no-special-text",
        subject: "chat template",
        expected: `the text of the model's token as ${name}, or "" where it has none`,
        remedy: "use DeltaTokenizer.forModel(model), which provides these texts",
      });
    }
    try {
      this.template = parseTemplate(source, limits);
    } catch (cause) {
      if (cause instanceof TemplateLimitError) throw cause;
      throw new TokenizerError("does not parse", {
        code: "tokenizer/bad-template",
        subject: "chat template",
        expected: "a Jinja template",
        received: cut((cause as Error).message),
        cause,
      });
    }
  }

  /**
   * The text of a conversation, for people, with a placeholder for each image.
   * @throws TokenizerError with the template's own error message, for example about the order of roles, or with a
   * limit.
   */
  render(messages: readonly ChatMessage[], options: RenderOptions = {}): string {
    const marked = markImages(messages);
    return showImages(this.renderMarks(marked.messages, options), marked.images);
  }

  /** The same for messages whose contents are texts; marks of images in them are printed unchanged. */
  renderMarks(messages: readonly ChatMessage[], options: RenderOptions = {}): string {
    try {
      const marks = this.listImageParts(messages);
      if (marks.length === 0) return this.renderVariables(this.makeVariables(messages, options));
      return placeMarks(messages, options, marks, this.forms.findImageText()!, (given, more) =>
        this.renderVariables(this.makeVariables(given, more)),
      );
    } catch (cause) {
      if (cause instanceof TokenizerError) throw cause;
      throw new TokenizerError("cannot render this conversation", {
        code: "tokenizer/render-failed",
        subject: "chat template",
        expected: "messages that the template accepts",
        received: cut(`${showImages((cause as Error).message)} (roles: ${messages.map((m) => m.role).join(", ")})`),
        cause,
      });
    }
  }

  /** Marks of the images that the template receives as parts, and prints in its own notation. */
  private listImageParts(messages: readonly ChatMessage[]): string[] {
    return messages.flatMap(({ role, content }) => {
      const marks = cutAtMarks(String(content ?? "")).filter(({ hash }) => hash !== null);
      return marks.length > 0 && this.forms.contentOf(role) === "image parts" ? marks.map(({ text }) => text) : [];
    });
  }

  /** True if it prints users' messages only from a list of parts. */
  get takesParts(): boolean {
    return this.forms.contentOf("user") !== "text";
  }

  private renderVariables(variables: Record<string, unknown>): string {
    if (this.exceeded) throw this.exceeded;
    try {
      return this.template.render(variables);
    } catch (cause) {
      if (cause instanceof TemplateLimitError) this.exceeded = cause;
      throw cause;
    }
  }

  /** The template's variables: the messages in the form that it understands, and the others. */
  makeVariables(messages: readonly ChatMessage[], options: RenderOptions = {}): Record<string, unknown> {
    const marked = markImages(messages).messages;
    const calls = messages.some((message) => message.tool_calls && message.tool_calls.length > 0);
    return this.fillVariables(marked, options, {
      calls: calls ? this.forms.findCallForm() : callForms[0]!,
      contentOf: (role) => this.forms.contentOf(role),
    });
  }

  private fillVariables(
    messages: readonly ChatMessage[],
    options: RenderOptions,
    form: MessageForm,
  ): Record<string, unknown> {
    const variables: Record<string, unknown> = {
      bos_token: "",
      eos_token: "",
      ...this.specialTokens,
      ...options.kwargs,
      messages: pairCallsWithAnswers(messages).map((message) => toTemplateMessage(message, form, this.source)),
      add_generation_prompt: options.addGenerationPrompt ?? false,
    };
    // Absent, not undefined: templates test `tools is defined`.
    if (options.tools && options.tools.length > 0) {
      variables["tools"] = options.tools;
      // SmolLM3's name for them.
      if (/\bxml_tools\b/.test(this.source)) variables["xml_tools"] ??= options.tools;
    }
    return variables;
  }
}

function cut(text: string): string {
  return text.length > longestComplaint ? `${text.slice(0, longestComplaint)}...` : text;
}
