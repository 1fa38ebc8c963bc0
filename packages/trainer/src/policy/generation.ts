import type { ChatMessage, PolicyEngine, SamplingOptions } from "@cria/core";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";

/** A text that is being generated: await it whole, or iterate over its pieces as they come. */
export class Generation implements PromiseLike<string>, AsyncIterable<string> {
  private readonly pieces: string[] = [];
  private wake: (() => void) | null = null;
  private isOver = false;
  private readonly text: Promise<string>;

  constructor(run: (onText: (piece: string) => void) => Promise<string>) {
    const onText = (piece: string) => {
      this.pieces.push(piece);
      this.wake?.();
    };
    this.text = run(onText).finally(() => {
      this.isOver = true;
      this.wake?.();
    });
    // A caller that only iterates gets a failure from the iterator, not as an unhandled rejection.
    this.text.catch(() => undefined);
  }

  // biome-ignore lint/suspicious/noThenProperty: it is awaited as a promise is.
  then<A = string, B = never>(
    onText?: ((text: string) => A | PromiseLike<A>) | null,
    onError?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.text.then(onText, onError);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string> {
    for (let next = 0; ; ) {
      while (next < this.pieces.length) yield this.pieces[next++]!;
      if (this.isOver) break;
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
    await this.text;
  }
}

/** Starts to generate the assistant's next message. */
export function generate(
  engine: PolicyEngine,
  tokenizer: DeltaTokenizer,
  messages: readonly ChatMessage[],
  options: SamplingOptions & { maxTokens?: number; signal?: AbortSignal },
): Generation {
  return new Generation(async (onText) => {
    const promptIds = tokenizer.encodePrompt(messages);
    const sequence = engine.createSequence();
    try {
      const { maxTokens = engine.info.contextSize - promptIds.length, temperature = 0, ...sampling } = options;
      const { text } = await sequence.generate(promptIds, { ...sampling, temperature, maxTokens, onText });
      return text;
    } finally {
      sequence.dispose();
    }
  });
}
