import { type ChatMessage, contentText, listImages } from "@cria/core";
import { isLoaded } from "@cria/core/internal";
import type { OutputItem } from "../protocol/responses.js";
import type { ResponsesLookUp } from "../protocol/responses-request.js";

export interface ResponseMemoryOptions {
  /** Most responses that are remembered; the oldest is forgotten first. */
  most?: number;
  /** Most characters of all their conversations together; shared beginnings count each time. */
  mostCharacters?: number;
}

interface Remembered {
  messages: readonly ChatMessage[];
  items: readonly OutputItem[];
  characters: number;
}

/** Responses and items that `previous_response_id` and item references can name. */
export class ResponseMemory implements ResponsesLookUp {
  private readonly responses = new Map<string, Remembered>();
  private readonly items = new Map<string, OutputItem>();
  private characters = 0;

  constructor(private readonly options: ResponseMemoryOptions = {}) {}

  get size(): number {
    return this.responses.size;
  }

  /** @param messages the conversation up to the response, with the response's message. */
  remember(id: string, messages: readonly ChatMessage[], items: readonly OutputItem[]): void {
    const characters = messages.reduce((sum, message) => sum + countCharacters(message), 0);
    this.responses.set(id, { messages, items, characters });
    this.characters += characters;
    for (const item of items) this.items.set(item.id, item);
    const { most = 1024, mostCharacters = 2 ** 25 } = this.options;
    for (const oldest of this.responses.keys()) {
      if (this.responses.size <= most && this.characters <= mostCharacters) break;
      this.forget(oldest);
    }
  }

  findHistory(id: string): readonly ChatMessage[] | undefined {
    return this.responses.get(id)?.messages;
  }

  findItem(id: string): object | undefined {
    return this.items.get(id);
  }

  private forget(id: string): void {
    const { characters, items } = this.responses.get(id)!;
    this.characters -= characters;
    this.responses.delete(id);
    for (const item of items) this.items.delete(item.id);
  }
}

/** A byte of an image counts as a character. */
function countCharacters({ content, tool_calls = [] }: ChatMessage): number {
  const images = listImages(content).reduce((sum, { image }) => sum + (isLoaded(image) ? image.bytes.length : 0), 0);
  const said = contentText(content).length + images + 16;
  return tool_calls.reduce((sum, { function: called }) => sum + JSON.stringify(called).length, said);
}
