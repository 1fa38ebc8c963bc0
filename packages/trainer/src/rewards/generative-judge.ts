import type { ChatMessage, PolicyEngine } from "@cria/core";
import type { RewardRequest } from "@cria/rollout";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import type { ChatEndpoint } from "./chat-endpoint.js";
import { encodeWithin } from "./encode-within.js";
import type { JudgePrompt } from "./judge-prompt.js";
import { parseScore, type ScoreFormat } from "./parse-score.js";
import type { ModelScore, RewardModel } from "./reward-model.js";

/** Generates the verdict for a prompt. */
export type WriteVerdict = (messages: readonly ChatMessage[], signal: AbortSignal) => Promise<string>;

export interface VerdictOptions {
  maxTokens: number;
  temperature: number;
}

/**
 * A model that writes a verdict with a score for a conversation (LLM as a judge; Zheng et al. 2023,
 * arXiv:2306.05685).
 */
export class GenerativeJudge implements RewardModel {
  constructor(
    private readonly write: WriteVerdict,
    private readonly prompt: JudgePrompt,
    private readonly format: ScoreFormat,
    readonly dispose?: () => Promise<void>,
  ) {}

  async score(request: RewardRequest, signal: AbortSignal): Promise<ModelScore> {
    const verdict = await this.write(this.prompt.render(request), signal);
    // A truncated text is no verdict.
    signal.throwIfAborted();
    return { score: parseScore(verdict, this.format), verdict };
  }
}

/** Generates verdicts with a model in this process. */
export function writeWithEngine(
  engine: PolicyEngine,
  tokenizer: DeltaTokenizer,
  { maxTokens, temperature }: VerdictOptions,
): WriteVerdict {
  return async (messages, signal) => {
    const promptIds = encodeWithin(tokenizer, messages, engine.info.contextSize - 1);
    const sequence = engine.createSequence();
    try {
      const room = engine.info.contextSize - promptIds.length;
      const options = { maxTokens: Math.min(maxTokens, room), temperature, seed: 0, signal };
      return (await sequence.generate(promptIds, options)).text;
    } finally {
      sequence.dispose();
    }
  };
}

/** Generates verdicts with a server. */
export function writeWithEndpoint(endpoint: ChatEndpoint, options: VerdictOptions): WriteVerdict {
  return async (messages, signal) => (await endpoint.complete(messages, { ...options, signal })).text;
}
