import { type ChatMessage, ConfigError, type PolicyEngine, type SamplingOptions } from "@cria/core";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";

/**
 * A text that is being generated: await it whole, iterate over its pieces as they come, or both. Who leaves the iteration ends the
 * text there.
 */
export class Generation implements PromiseLike<string>, AsyncIterable<string> {
  private readonly pieces: string[] = [];
  private wake: (() => void)[] = [];
  private isOver = false;
  private readonly left = new AbortController();
  private readonly text: Promise<string>;

  /** @param run generates; when its signal aborts it ends with what there is. */
  constructor(run: (onText: (piece: string) => void, left: AbortSignal) => Promise<string>) {
    const onText = (piece: string) => {
      this.pieces.push(piece);
      this.notify();
    };
    this.text = run(onText, this.left.signal).finally(() => {
      this.isOver = true;
      this.notify();
    });
  }

  // biome-ignore lint/suspicious/noThenProperty: it is awaited as a promise is.
  then<A = string, B = never>(
    onText?: ((text: string) => A | PromiseLike<A>) | null,
    onError?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.text.then(onText, onError);
  }

  /** Pieces from the first on. @throws what ended the generation. */
  [Symbol.asyncIterator](): AsyncGenerator<string> {
    // Who iterates hears of a failure there.
    this.text.catch(() => undefined);
    return this.iterate();
  }

  private async *iterate(): AsyncGenerator<string> {
    try {
      for (let next = 0; ; ) {
        while (next < this.pieces.length) yield this.pieces[next++]!;
        if (this.isOver) break;
        await new Promise<void>((resolve) => this.wake.push(resolve));
      }
    } finally {
      this.left.abort();
    }
    await this.text;
  }

  private notify(): void {
    for (const resolve of this.wake.splice(0)) resolve();
  }
}

/** Starts to generate the assistant's next message. */
export function generate(
  engine: PolicyEngine,
  tokenizer: DeltaTokenizer,
  messages: readonly ChatMessage[],
  options: SamplingOptions & { maxTokens?: number; signal?: AbortSignal },
): Generation {
  return new Generation(async (onText, left) => {
    const { maxTokens, temperature = 0, signal, ...sampling } = options;
    signal?.throwIfAborted();
    const promptIds = tokenizer.encodePrompt(messages);
    const { contextSize, path } = engine.info;
    const room = contextSize - promptIds.length;
    if (room < 1) {
      throw new ConfigError("has no room for an answer to this prompt", {
        code: "config/context-too-small",
        subject: `generate by ${path}`,
        expected: `a prompt of fewer than ${contextSize} tokens, the context's size`,
        received: `${promptIds.length} tokens`,
        remedy: "loadPolicy(path, { contextSize }), or a shorter prompt",
      });
    }
    const sequence = engine.createSequence();
    try {
      const { text } = await sequence.generate(promptIds, {
        ...sampling,
        temperature,
        maxTokens: Math.min(maxTokens ?? room, room),
        onText,
        signal: signal ? AbortSignal.any([signal, left]) : left,
      });
      signal?.throwIfAborted();
      return text;
    } finally {
      sequence.dispose();
    }
  });
}
