import { type ChatMessage, ConfigError, type PolicyEngine, type SamplingOptions } from "@cria/core";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import { RunningStream } from "../running.js";

/**
 * A running generation of text: await the whole text, iterate over its pieces as they are generated, or both. Leaving
 * the iteration stops the generation.
 */
export class Generation extends RunningStream<string, string> {
  protected readonly result: Promise<string>;
  private readonly left = new AbortController();

  /** @param run generates the text; when its signal aborts, it returns the text so far. */
  constructor(run: (onText: (piece: string) => void, left: AbortSignal) => Promise<string>) {
    super();
    this.result = this.watch(run((piece) => this.add(piece), this.left.signal));
  }

  protected leave(): void {
    this.left.abort();
  }
}

/** Starts generating the assistant's next message. */
export function generate(
  engine: PolicyEngine,
  tokenizer: DeltaTokenizer,
  messages: readonly ChatMessage[],
  options: SamplingOptions & { maxTokens?: number; signal?: AbortSignal },
): Generation {
  return new Generation(async (onText, left) => {
    const { maxTokens, temperature = 0, signal, ...sampling } = options;
    signal?.throwIfAborted();
    const { loadMessages } = await import("@cria/rollout/internal");
    const shown = await loadMessages(messages, { folder: process.cwd(), subject: "image of the prompt" });
    const promptIds = tokenizer.encodePrompt(shown);
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
