import { hashSeed } from "@cria/core";
import { hashValue } from "@cria/episodes";
import type { ChatAnswer, ChatModel, ChatOptions, ChatRequest } from "./chat-model.js";
import { ChatSession, type ChatSessionOptions } from "./chat-session.js";
import { checkRequest } from "./check-request.js";
import { loadRequest } from "./load-request.js";

export interface ChatPoolOptions extends Omit<ChatSessionOptions, "id"> {
  /** Most tokens that the records of conversations hold; those that were idle for longest are forgotten first. Default 2^20. */
  mostTokens?: number;
}

interface Entry {
  session: ChatSession;
  tokens: number;
  running: number;
}

/**
 * A model for conversations that have nothing to do with each other, as long as the program runs. Conversations that begin alike,
 * up to the first message of a user, share a session: so what was said before is not evaluated again, and memory is given back
 * conversation by conversation.
 */
export class ChatPool implements ChatModel {
  readonly name: string;
  /** By what conversations begin with; the one that was used last stands last. */
  private readonly entries = new Map<string, Entry>();
  private tokens = 0;

  constructor(private readonly options: ChatPoolOptions) {
    this.name = options.name;
  }

  /** What its answers are made with. */
  get model(): Pick<ChatSessionOptions, "engine" | "tokenizer"> {
    return this.options;
  }

  /** Sessions that are remembered now. */
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
