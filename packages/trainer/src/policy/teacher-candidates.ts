import { TEACHER_LOGPROBS } from "@cria/algorithms/internal";
import type { LikeliestTokens, TrainCandidates } from "@cria/core";

/** The teacher's likeliest tokens as the candidates that its loss compares. */
export function toCandidates({ count, ids, logprobs }: LikeliestTokens): TrainCandidates {
  return { count, ids, columns: { [TEACHER_LOGPROBS]: logprobs } };
}
