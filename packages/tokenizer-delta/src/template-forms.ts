import type { ChatMessage, Role } from "@cria/core";
import { findImageText } from "./find-image-text.js";
import { markOf } from "./image-marks.js";
import { type CallForm, type ContentForm, callForms, type MessageForm } from "./template-message.js";

type Render = (messages: readonly ChatMessage[], form: MessageForm) => string;

const WORD = "probe_word_7f3a";
const call = { name: "probe_name_7f3a", arguments: { probe_key_7f3a: "probe-value-7f3a" } };
const calls: ChatMessage = {
  role: "assistant",
  content: "",
  tool_calls: [{ id: "probe07f3", type: "function", function: call }],
};
const question: ChatMessage = { role: "user", content: "probe" };
const image = markOf({ hash: "" });

/** The forms of messages that a template prints, found by rendering small conversations once. */
export class TemplateForms {
  private callForm: CallForm | undefined;
  private readonly contentForms = new Map<Role, ContentForm>();
  private imageText: RegExp | null | undefined;

  constructor(private readonly render: Render) {}

  /** The form of tool calls for the template: the first one in which it prints name and arguments of a call. */
  findCallForm(): CallForm {
    const works = (form: CallForm) =>
      this.prints([question, calls], { calls: form, contentOf: (role) => this.contentOf(role) }, [
        "probe_name_7f3a",
        "probe_key_7f3a",
        "probe-value-7f3a",
      ]);
    this.callForm ??= callForms.find(works) ?? callForms[0]!;
    return this.callForm;
  }

  /**
   * The form of contents of a role for the template: text, if it prints that. A template that requires parts for users
   * is tested with each role, and for whether it prints images there itself.
   */
  contentOf(role: Role): ContentForm {
    const known = this.contentForms.get(role) ?? this.findContentForm(role);
    this.contentForms.set(role, known);
    return known;
  }

  /** The template's text of an image; null if it cannot be told from the text around it. */
  findImageText(): RegExp | null {
    if (this.imageText !== undefined) return this.imageText;
    const form = this.formWith("user", "image parts");
    this.imageText = findImageText((content) => this.render(around("user", content), form));
    return this.imageText;
  }

  private findContentForm(role: Role): ContentForm {
    if (role !== "user" && this.contentOf("user") === "text") return "text";
    const works = (form: ContentForm) => this.prints(around(role, WORD), this.formWith(role, form), [WORD]);
    if (works("text") || !works("text parts")) return "text";
    return this.printsImages(role) ? "image parts" : "text parts";
  }

  private printsImages(role: Role): boolean {
    const text = this.findImageText();
    if (!text) return false;
    try {
      const rendered = this.render(around(role, `${WORD}${image}`), this.formWith(role, "image parts"));
      return [...rendered.matchAll(text)].length === 1;
    } catch {
      return false;
    }
  }

  private formWith(role: Role, form: ContentForm): MessageForm {
    return {
      calls: role === "tool" ? this.findCallForm() : callForms[0]!,
      contentOf: (other) => (other === role ? form : this.contentOf(other)),
    };
  }

  private prints(messages: readonly ChatMessage[], form: MessageForm, words: readonly string[]): boolean {
    try {
      const text = this.render(messages, form);
      return words.every((word) => text.includes(word));
    } catch {
      return false;
    }
  }
}

/** A conversation in which this role has this content. */
function around(role: Role, content: string): ChatMessage[] {
  const message: ChatMessage = { role, content };
  if (role === "user") return [message];
  if (role === "assistant") return [question, message, question];
  if (role === "tool") return [question, calls, { ...message, name: call.name, tool_call_id: "probe07f3" }];
  return [message, question];
}
