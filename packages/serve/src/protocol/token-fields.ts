import type { ChatAnswer } from "@cria/rollout";
import type { AnswerContext, TokenWishes } from "./protocol.js";

/** Where an answer stands in its session: what training wants to know, in every protocol's answers. */
export function describeNode(answer: ChatAnswer) {
  return {
    session: answer.session,
    node: answer.node,
    policy_version: answer.policyVersion,
    reused_tokens: answer.usage.reusedTokens,
  };
}

/** `token_ids` of an answer: as sampled, control tokens included. */
export function listTokens(answer: ChatAnswer, wishes: TokenWishes) {
  return wishes.ids ? { token_ids: [...answer.tokenIds] } : {};
}

export function listPromptTokens(answer: ChatAnswer, wishes: TokenWishes) {
  return wishes.ids ? { prompt_token_ids: [...answer.promptTokenIds] } : {};
}

/** One entry for each sampled token, the stop token included. No other candidate than the sampled one is known. */
export function listLogprobs(answer: ChatAnswer, context: AnswerContext) {
  const spelled = context.spell(answer.tokenIds);
  return spelled.map(({ text, bytes }, i) => ({
    token: text,
    logprob: answer.logprobs[i]!,
    bytes: bytes && [...bytes],
    top_logprobs: [],
  }));
}

export function joinUsage(answers: readonly ChatAnswer[]) {
  // Every choice has the same prompt, which counts once.
  const prompt = answers[0]?.usage.promptTokens ?? 0;
  const reused = answers[0]?.usage.reusedTokens ?? 0;
  const completion = answers.reduce((sum, { usage }) => sum + usage.completionTokens, 0);
  return { prompt, reused, completion };
}
