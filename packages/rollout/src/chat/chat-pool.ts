import { hashSeed } from "@cria/core";
import { hashValue } from "@cria/episodes/internal";
import type { ChatAnswer, ChatModel, ChatOptions, ChatRequest } from "./chat-model.js";
import { ChatSession, type ChatSessionOptions } from "./chat-session.js";
import { checkRequest } from "./check-request.js";
import { loadRequest } from "./load-request.js";

export interface ChatPoolOptions extends Omit<ChatSessionOptions, "id"> {
  /**
   * Maximum number of tokens in all remembered conversations; the least recently used are dropped first. Default
   * 2^20.
   */
  mostTokens?: number;
}

interface Entry {
  session: ChatSession;
  tokens: number;
  running: number;
}

/**
 * A model for unrelated conversations over the whole life of a program. Conversations with the same beginning, up to
 * the first user message, share a session: the shared part is evaluated once, and memory is freed conversation by
 * conversation.
 */
export class ChatPool implements ChatModel {
  readonly name: string;
  /** Sessions by the beginning of their conversations, least recently used first. */
  private readonly entries = new Map<string, Entry>();
  private tokens = 0;

  constructor(private readonly options: ChatPoolOptions) {
    this.name = options.name;
  }

  /** Engine and tokenizer that generate the answers. */
  get model(): Pick<ChatSessionOptions, "engine" | "tokenizer"> {
    return this.options;
  }

  /** Number of sessions currently remembered. */
  get size(): number {
    return this.entries.size;
  }

  async complete(request: ChatRequest, options?: ChatOptions): Promise<ChatAnswer> {
    checkRequest(request);
    const { engine, images } = this.options;
    const loaded = { ...request, messages: await loadRequest(request.messages, engine.images, images) };
    const entry = this.open(nameBeginning(loaded));
    entry.running++;
    try {
      const answer = await entry.session.complete(loaded, options);
      const tokens = answer.usage.promptTokens + answer.usage.completionTokens;
      entry.tokens += tokens;
      this.tokens += tokens;
      return answer;
    } finally {
      entry.running--;
      this.makeRoom();
    }
  }

  /** Ends all calls and frees what conversations hold in the engine. */
  dispose(): void {
    for (const { session } of this.entries.values()) session.dispose();
    this.entries.clear();
    this.tokens = 0;
  }

  private open(key: string): Entry {
    const known = this.entries.get(key);
    const entry = known ?? { session: this.openSession(key), tokens: 0, running: 0 };
    this.entries.delete(key);
    this.entries.set(key, entry);
    return entry;
  }

  private openSession(key: string): ChatSession {
    return new ChatSession({ ...this.options, id: key, seed: hashSeed(this.options.seed, key) });
  }

  private makeRoom(): void {
    const { mostTokens = 2 ** 20 } = this.options;
    for (const [key, entry] of this.entries) {
      if (this.tokens <= mostTokens) return;
      if (entry.running > 0) continue;
      this.entries.delete(key);
      this.tokens -= entry.tokens;
      entry.session.dispose();
    }
  }
}

function nameBeginning({ messages, tools = [] }: ChatRequest): string {
  const first = messages.findIndex(({ role }) => role === "user");
  const beginning = messages.slice(0, first < 0 ? messages.length : first + 1);
  return hashValue(
    tools,
    beginning.map(({ role, content }) => [role, content]),
  );
}
