import type { ChatMessage, PolicyEngine } from "@cria/core";
import type { RewardRequest } from "@cria/rollout";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import type { ChatEndpoint } from "./chat-endpoint.js";
import { encodeWithin } from "./encode-within.js";
import type { JudgePrompt } from "./judge-prompt.js";
import { JudgementError, type ModelScore, type RewardModel } from "./reward-model.js";

/** Log-odds of the answer "yes" against "no" to a prompt. */
export type WeighAnswers = (messages: readonly ChatMessage[], signal: AbortSignal) => Promise<number>;

export interface Answers {
  yes: string;
  no: string;
}

/**
 * p(yes) / (p(yes) + p(no)) of a chat model's answer: a score from one forward pass, without generated text (Zhang
 * et al. 2024, "Generative verifiers", arXiv:2408.15240).
 */
export class YesNoScorer implements RewardModel {
  constructor(
    private readonly weigh: WeighAnswers,
    private readonly prompt: JudgePrompt,
    readonly dispose?: () => Promise<void>,
  ) {}

  async score(request: RewardRequest, signal: AbortSignal): Promise<ModelScore> {
    return { score: 1 / (1 + Math.exp(-(await this.weigh(this.prompt.render(request), signal)))) };
  }
}

/**
 * Weighs the answers with a trainable model (only those have the scoring graph), adapter off. All tokens of an
 * answer count, so the answers may have several tokens each.
 */
export function weighWithEngine(
  engine: PolicyEngine,
  tokenizer: DeltaTokenizer,
  { yes, no }: Answers,
  maxModelLen: number,
): WeighAnswers {
  const answers = [yes, no].map((answer) => engine.tokenize(answer, { special: false }));
  const longest = Math.max(...answers.map((ids) => ids.length));
  return async (messages, signal) => {
    const promptIds = encodeWithin(tokenizer, messages, maxModelLen - longest);
    const sequences = answers.map((ids) => ({ tokenIds: [...promptIds, ...ids], from: promptIds.length }));
    const scored = await engine.score(sequences, { adapter: false, signal });
    const [yesLogprob, noLogprob] = scored.map(({ logprobs }) => logprobs.reduce((a, b) => a + b, 0));
    return yesLogprob! - noLogprob!;
  };
}

/** OpenAI's limit. */
const MOST_LOGPROBS = 20;

/**
 * Weighs the answers with a server: sums all likeliest first tokens that spell the word, ignoring case and white
 * space.
 */
export function weighWithEndpoint(endpoint: ChatEndpoint, { yes, no }: Answers): WeighAnswers {
  return async (messages, signal) => {
    const options = { maxTokens: 1, temperature: 0, topLogprobs: MOST_LOGPROBS, signal };
    const { topLogprobs, text } = await endpoint.complete(messages, options);
    if (topLogprobs.length === 0)
      throw new JudgementError("has no logprobs: top_logprobs is missing", {
        code: "reward/bad-answer",
        subject: "server's answer",
      });
    const probabilityOf = (answer: string) =>
      topLogprobs
        .filter(({ token }) => token.trim().toLowerCase() === answer.trim().toLowerCase())
        .reduce((sum, { logprob }) => sum + Math.exp(logprob), 0);
    const [p, q] = [probabilityOf(yes), probabilityOf(no)];
    if (p + q === 0)
      throw new JudgementError(`are neither ${yes} nor ${no}`, {
        code: "reward/bad-verdict",
        subject: `${topLogprobs.length} likeliest answers`,
        verdict: text,
      });
    return Math.log(p) - Math.log(q);
  };
}
