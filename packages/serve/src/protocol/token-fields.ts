import type { TokenCandidate } from "@cria/core";
import type { ChatAnswer } from "@cria/rollout";
import type { AnswerContext, TokenWishes } from "./protocol.js";

/** The answer's place in its session, which training needs; in every protocol's answers. */
export function describeNode(answer: ChatAnswer) {
  return {
    session: answer.session,
    node: answer.node,
    policy_version: answer.policyVersion,
    reused_tokens: answer.usage.reusedTokens,
  };
}

/** `token_ids` of an answer: the sampled tokens, with control tokens. */
export function listTokens(answer: ChatAnswer, wishes: TokenWishes) {
  return wishes.ids ? { token_ids: [...answer.tokenIds] } : {};
}

/** `prompt_token_ids`, with -1 for each token of an image. */
export function listPromptTokens(answer: ChatAnswer, wishes: TokenWishes) {
  return wishes.ids ? { prompt_token_ids: [...answer.promptTokenIds] } : {};
}

/** One entry for each sampled token, with the stop token, and the requested candidates. */
export function listLogprobs(answer: ChatAnswer, context: AnswerContext) {
  const sampled = Array.from(answer.tokenIds, (id, i) => ({ id, logprob: answer.logprobs[i]! }));
  return writeCandidates(sampled, context).map((entry, i) => ({
    ...entry,
    top_logprobs: writeCandidates(answer.topLogprobs?.[i] ?? [], context),
  }));
}

function writeCandidates(candidates: readonly TokenCandidate[], context: AnswerContext) {
  const spelled = context.spell(candidates.map(({ id }) => id));
  return candidates.map(({ logprob }, i) => {
    const { text, bytes } = spelled[i]!;
    return { token: text, logprob, bytes: bytes && [...bytes] };
  });
}

export function joinUsage(answers: readonly ChatAnswer[]) {
  // All choices share one prompt, which counts once.
  const prompt = answers[0]?.usage.promptTokens ?? 0;
  const reused = answers[0]?.usage.reusedTokens ?? 0;
  const completion = answers.reduce((sum, { usage }) => sum + usage.completionTokens, 0);
  const reasoning = answers.reduce((sum, { usage }) => sum + usage.reasoningTokens, 0);
  return { prompt, reused, completion, reasoning };
}
