import { type ChatMessage, type PolicyEngine, ToolError } from "@cria/core";

export interface ChatOptions {
  temperature: number;
  maxTokens: number;
  seed?: number;
  signal?: AbortSignal;
}

/** A model that answers a conversation, in this process or at an endpoint. */
export interface ChatModel {
  answer(messages: readonly ChatMessage[], options: ChatOptions): Promise<string>;
}

/** A second model in this process. */
export class EngineChatModel implements ChatModel {
  /**
   * @param renderPrompt gives the tokens of a conversation up to the assistant's turn, as `DeltaTokenizer.encodePrompt`
   * does.
   */
  constructor(
    private readonly engine: Pick<PolicyEngine, "createSequence" | "info">,
    private readonly renderPrompt: (messages: readonly ChatMessage[]) => ArrayLike<number>,
  ) {}

  async answer(messages: readonly ChatMessage[], options: ChatOptions): Promise<string> {
    const promptIds = this.renderPrompt(messages);
    const room = this.engine.info.contextSize - promptIds.length;
    if (room < 1) {
      throw new ToolError("does not fit into the user model's context", {
        code: "interaction/context-exceeded",
        subject: "conversation",
        expected: `fewer than ${this.engine.info.contextSize} tokens`,
        received: `${promptIds.length} tokens`,
      });
    }
    const sequence = this.engine.createSequence();
    try {
      const { temperature, seed, signal } = options;
      const maxTokens = Math.min(options.maxTokens, room);
      return (await sequence.generate(promptIds, { maxTokens, temperature, seed, signal })).text;
    } finally {
      sequence.dispose();
    }
  }
}

export interface EndpointOptions {
  /** Up to and without /chat/completions, for example http://127.0.0.1:8080/v1. */
  baseUrl: string;
  model: string;
  apiKey?: string;
  /** Retries after a network error, HTTP 429 or 5xx. */
  retries: number;
  /** Seconds before the first retry; each later wait is twice as long. */
  retryDelayS: number;
}

/** Any server with OpenAI's chat completions. */
export class EndpointChatModel implements ChatModel {
  constructor(private readonly options: EndpointOptions) {}

  async answer(messages: readonly ChatMessage[], options: ChatOptions): Promise<string> {
    const { retries, retryDelayS } = this.options;
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.request(messages, options);
      } catch (error) {
        const final = error instanceof ToolError && error.code !== "interaction/endpoint-busy";
        if (final || attempt >= retries || options.signal?.aborted) throw error;
        await sleep(retryDelayS * 1000 * 2 ** attempt, options.signal);
      }
    }
  }

  private async request(messages: readonly ChatMessage[], options: ChatOptions): Promise<string> {
    const { baseUrl, model, apiKey } = this.options;
    const url = `${baseUrl.replace(/\/+$/, "")}/chat/completions`;
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", ...(apiKey ? { authorization: `Bearer ${apiKey}` } : {}) },
      body: JSON.stringify({
        model,
        messages: messages.map(({ role, content }) => ({ role, content })),
        temperature: options.temperature,
        max_tokens: options.maxTokens,
        ...(options.seed === undefined ? {} : { seed: options.seed }),
      }),
      signal: options.signal,
    });
    const text = await response.text();
    const fail = (summary: string, code: string, expected: string, received: string) =>
      new ToolError(summary, { code: `interaction/${code}`, subject: url, expected, received: received.slice(0, 300) });
    if (!response.ok) {
      const busy = response.status === 429 || response.status >= 500;
      const code = busy ? "endpoint-busy" : "endpoint-refused";
      throw fail("refused a request", code, "HTTP 200", `HTTP ${response.status}: ${text}`);
    }
    const content = readContent(text);
    if (content !== null) return content;
    throw fail("sent something else", "endpoint-answer", "choices[0].message.content", text);
  }
}

function readContent(text: string): string | null {
  try {
    const content = (JSON.parse(text) as { choices?: { message?: { content?: unknown } }[] }).choices?.[0]?.message
      ?.content;
    return typeof content === "string" ? content : null;
  } catch {
    return null;
  }
}

function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end, { once: true });
  });
}
