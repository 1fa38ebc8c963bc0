import {
  ConfigError,
  type GenerateOptions,
  type GenerateResult,
  type PolicyEngine,
  type PolicySequence,
} from "@cria/core";
import type { UnjudgedTrajectory } from "@cria/episodes";

/** Fields of a conversation that are needed to replay its tokens. */
export type TokenRecord = Pick<UnjudgedTrajectory, "tokenIds" | "responseMask" | "rolloutLogprobs" | "timeline">;

/**
 * Sequences that replay the recorded tokens of a conversation: nothing is sampled or evaluated. The rest of the
 * conversation follows from these tokens as it did before.
 */
export class RecordedTokens {
  private turn = 0;
  private readonly turns: { start: number; end: number }[];

  constructor(
    private readonly engine: Pick<PolicyEngine, "detokenize" | "info">,
    private readonly record: TokenRecord,
  ) {
    this.turns = (record.timeline?.turns ?? []).filter(({ role }) => role === "assistant");
  }

  steer = (sequence: PolicySequence): PolicySequence => ({
    get tokenCount() {
      return sequence.tokenCount;
    },
    generate: (_, options) => Promise.resolve(this.next(options)),
    prefill: () => Promise.resolve(),
    fork: () => this.steer(sequence.fork()),
    dispose: () => sequence.dispose(),
  });

  /** @throws ConfigError "replay/no-such-turn" if the record has no turn that could end there. */
  private next({ maxTokens, stopTokens, stopStrings = [], grammar }: GenerateOptions): GenerateResult {
    const place = this.turns[this.turn++];
    if (!place) throw this.makeError("no further turn");
    const { tokenIds, responseMask, rolloutLogprobs } = this.record;
    const tokens = tokenIds.slice(place.start, place.end);
    const { length } = tokens;
    if (length === 0 || length > maxTokens) throw this.makeError(`${length} tokens where 1 to ${maxTokens} fit`);
    const isEnd = (stopTokens ?? this.engine.info.endOfGenerationTokens).includes(tokens.at(-1)!);
    const text = this.engine.detokenize(isEnd ? tokens.subarray(0, -1) : tokens);
    const stopString = isEnd ? undefined : findStop(text, stopStrings);
    const isStopped = isEnd || stopString !== undefined;
    if (!isStopped && length < maxTokens) throw this.makeError(`${length} of ${maxTokens} tokens, and nothing ends it`);
    return {
      tokenIds: tokens,
      logprobs: rolloutLogprobs.slice(place.start, place.end),
      finishReason: isStopped ? "stop" : "length",
      ...(stopString === undefined ? {} : { stopString }),
      // Only the sampler knows which tokens the grammar constrained; assume those that the record masks.
      ...(grammar ? { constrained: responseMask.slice(place.start, place.end).map((bit) => 1 - bit) } : {}),
      text: stopString === undefined ? text : text.slice(0, text.indexOf(stopString)),
      stats: { prefillTokens: 0, reusedTokens: 0, decodeTokens: 0, queueMs: 0, prefillMs: 0, decodeMs: 0 },
    };
  }

  private makeError(received: string): ConfigError {
    return new ConfigError("is not what was recorded", {
      code: "replay/no-such-turn",
      subject: `turn ${this.turn} of the assistant`,
      expected: "the tokens of a turn that ended as turns do",
      received,
    });
  }
}

/** Finds the stop string that begins first in the text. */
function findStop(text: string, stops: readonly string[]): string | undefined {
  const found = stops.filter((stop) => text.includes(stop));
  return found.length === 0 ? undefined : found.reduce((a, b) => (text.indexOf(b) < text.indexOf(a) ? b : a));
}
