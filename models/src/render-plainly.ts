import type { ChatMessage, ToolSchema } from "@cria/core";
import { ChatTemplate } from "@cria/tokenizer-delta";

/** A conversation as the text that its template prints. */
export function renderPlainly(
  template: string,
  messages: readonly ChatMessage[],
  tools: readonly ToolSchema[],
): string {
  return new ChatTemplate(template).render(messages, { tools });
}
