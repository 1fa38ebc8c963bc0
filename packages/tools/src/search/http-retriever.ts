import { setTimeout as sleep } from "node:timers/promises";
import { ToolError } from "@cria/core";
import type { Passage, Retriever } from "./passage.js";

export interface HttpRetrieverOptions {
  /** Limit for one request, in seconds; default 30. */
  timeoutS?: number;
  /** Retries after connection failures and server errors; default 3. */
  retries?: number;
  /** Seconds before the first retry; each later wait is this much longer. Default 0.5. */
  retryDelayS?: number;
  /** Requests in flight at once; default 120. */
  maxConcurrent?: number;
}

/**
 * Asks a retrieval server in the format of Search-R1: it posts `{ queries, topk, return_scores }`, and receives `{
 * result: [[{ document: { contents }, score }]] }`, one list for each query.
 */
export class HttpRetriever implements Retriever {
  private inFlight = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(
    private readonly url: string,
    private readonly options: HttpRetrieverOptions = {},
  ) {}

  /** @throws ToolError when the server gives no answer, or an unreadable one. */
  async search(queries: readonly string[], topK: number, signal?: AbortSignal): Promise<Passage[][]> {
    while (this.inFlight >= (this.options.maxConcurrent ?? 120)) {
      await new Promise<void>((resolve) => this.waiting.push(resolve));
    }
    this.inFlight++;
    try {
      return readAnswer(await this.post({ queries, topk: topK, return_scores: true }, signal), queries.length);
    } finally {
      this.inFlight--;
      this.waiting.shift()?.();
    }
  }

  private async post(body: unknown, signal?: AbortSignal): Promise<unknown> {
    const { timeoutS = 30, retries = 3, retryDelayS = 0.5 } = this.options;
    for (let attempt = 0; ; attempt++) {
      let problem: unknown;
      try {
        const limit = AbortSignal.timeout(timeoutS * 1000);
        const response = await fetch(this.url, {
          method: "POST",
          headers: { "content-type": "application/json", accept: "application/json" },
          body: JSON.stringify(body),
          signal: signal ? AbortSignal.any([signal, limit]) : limit,
        });
        if (response.ok) return await response.json();
        problem = new Error(`HTTP ${response.status}: ${(await response.text()).slice(0, 200)}`);
        if (response.status < 500) throw this.fail(problem);
      } catch (error) {
        if (error instanceof ToolError || error instanceof SyntaxError) throw this.fail(error);
        problem = error;
      }
      if (attempt >= retries || signal?.aborted) throw this.fail(problem);
      await sleep(retryDelayS * 1000 * (attempt + 1), undefined, { signal });
    }
  }

  private fail(cause: unknown): ToolError {
    if (cause instanceof ToolError) return cause;
    const { message, cause: inner } = cause as Error;
    return new ToolError("gave no answer", {
      code: "tool/retriever",
      subject: `retriever ${this.url}`,
      received: inner instanceof Error ? `${message} (${inner.message})` : message,
      cause,
    });
  }
}

function readAnswer(answer: unknown, queries: number): Passage[][] {
  const result = (answer as { result?: unknown } | null)?.result;
  if (!Array.isArray(result) || result.length !== queries || !result.every(Array.isArray)) {
    throw new ToolError("cannot be read", {
      code: "tool/retriever",
      subject: "answer of the retriever",
      expected: `{ "result": [[{ "document": { "contents": ... }, "score": ... }]] } with ${queries} lists`,
      received: (JSON.stringify(answer) ?? "nothing").slice(0, 200),
    });
  }
  return result.map((list: unknown[]) => list.map(readPassage));
}

/** Reads a passage. A server may leave scores out, and then gives the documents themselves. */
function readPassage(item: unknown): Passage {
  const { document = item, score } = (item ?? {}) as { document?: unknown; score?: unknown };
  const { contents, title, text } = (document ?? {}) as { contents?: unknown; title?: unknown; text?: unknown };
  const [first = "", ...rest] = String(contents ?? text ?? "").split("\n");
  return typeof title === "string" && contents === undefined
    ? { title, text: [first, ...rest].join("\n"), score: Number(score ?? 0) }
    : { title: first.replace(/^"|"$/g, ""), text: rest.join("\n"), score: Number(score ?? 0) };
}
