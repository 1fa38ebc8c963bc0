import { type ChatMessage, ConfigError } from "@cria/core";
import { HttpError, requestJson } from "../trackers/request-json.js";
import { JudgementError } from "./reward-model.js";

export interface ChatEndpointOptions {
  /** Base address, without /chat/completions, for example http://127.0.0.1:8080/v1. */
  baseUrl: string;
  model: string;
  apiKey?: string;
  /** Number of retries after a network error, HTTP 429 or 5xx. */
  retries: number;
  /** Seconds before the first retry; doubled for each later one. */
  retryDelayS: number;
}

export interface CompletionOptions {
  maxTokens: number;
  temperature: number;
  /** Number of likeliest first tokens to request. */
  topLogprobs?: number;
  signal: AbortSignal;
}

export interface Completion {
  text: string;
  /** Likeliest first tokens, if they were requested. */
  topLogprobs: { token: string; logprob: number }[];
}

interface Answer {
  choices?: {
    message?: { content?: unknown };
    logprobs?: { content?: { top_logprobs?: { token: string; logprob: number }[] }[] } | null;
  }[];
}

/** HTTP statuses after which no request of this kind can succeed. */
const hopeless = new Set([401, 403, 404, 405]);

/** A server with OpenAI's chat completions. */
export class ChatEndpoint {
  private readonly url: string;

  constructor(private readonly options: ChatEndpointOptions) {
    this.url = `${options.baseUrl.replace(/\/+$/, "")}/chat/completions`;
  }

  /** @throws ConfigError for a wrong address, key or model; JudgementError for transient errors. */
  async complete(messages: readonly ChatMessage[], options: CompletionOptions): Promise<Completion> {
    const { retries, retryDelayS } = this.options;
    for (let attempt = 0; ; attempt++) {
      try {
        return this.read(await this.request(messages, options));
      } catch (error) {
        if (options.signal.aborted || !mayPass(error) || attempt >= retries) throw this.explain(error, attempt + 1);
        await pause(retryDelayS * 1000 * 2 ** attempt, options.signal);
      }
    }
  }

  private request(messages: readonly ChatMessage[], options: CompletionOptions): Promise<Answer> {
    const { model, apiKey } = this.options;
    return requestJson<Answer>(this.url, {
      headers: apiKey ? { authorization: `Bearer ${apiKey}` } : {},
      body: {
        model,
        messages,
        temperature: options.temperature,
        max_tokens: options.maxTokens,
        ...(options.topLogprobs ? { logprobs: true, top_logprobs: options.topLogprobs } : {}),
      },
      signal: options.signal,
    });
  }

  private read(answer: Answer): Completion {
    const choice = answer.choices?.[0];
    const text = choice?.message?.content;
    if (typeof text === "string") return { text, topLogprobs: choice?.logprobs?.content?.[0]?.top_logprobs ?? [] };
    const sent = JSON.stringify(answer).slice(0, 200);
    throw this.fail("reward/bad-answer", `sent no choices[0].message.content, but ${sent}`);
  }

  private explain(error: unknown, attempts: number): unknown {
    if (error instanceof HttpError && hopeless.has(error.status)) {
      return new ConfigError("refuses to judge", {
        code: "config/endpoint-refused",
        subject: this.url,
        expected: "HTTP 200",
        received: `HTTP ${error.status}: ${error.body.slice(0, 300)}`,
        remedy: "check base_url, model, and the key in the environment variable that api_key_env names",
        cause: error,
      });
    }
    const times = attempts > 1 ? ` (${attempts} attempts)` : "";
    if (error instanceof HttpError)
      return this.fail("reward/http-error", `answered HTTP ${error.status}${times}: ${error.body.slice(0, 300)}`);
    if (error instanceof SyntaxError) return this.fail("reward/bad-answer", `sent no JSON: ${error.message}`);
    if (!(error instanceof TypeError)) return error;
    // fetch only says "fetch failed"; the cause has the reason.
    const { cause } = error as { cause?: { code?: string; message?: string } };
    const why = cause?.message || cause?.code || error.message;
    return this.fail("reward/unreachable", `cannot be reached${times}: ${why}`);
  }

  private fail(code: string, summary: string): JudgementError {
    return new JudgementError(summary, { code, subject: this.url });
  }
}

/** True for network errors, and for statuses of a busy server. */
function mayPass(error: unknown): boolean {
  return error instanceof HttpError ? error.status === 429 || error.status >= 500 : error instanceof TypeError;
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end, { once: true });
  });
}
