import { drawNormal, makeRandom } from "./random.js";

/** One training step's work. */
export interface Workload {
  prompts: number;
  /** Conversations of each prompt. */
  samples: number;
  promptTokens: number;
  turns: number;
  /** What a tool answers after each turn but the last. */
  toolTokens: number;
  /** Mean of the exponential wait for each answer. */
  toolSeconds: number;
  /** Mean of a conversation's sampled tokens. */
  sampledTokens: number;
  /** Of the logarithm; 0: all are alike. */
  spread: number;
  /** Longer conversations are cut. */
  mostSampledTokens: number;
  /** Scores of each conversation: 1 for the logprobs before the update, 2 with a reference policy. */
  scorePasses: number;
  /** Share of all jobs that the coordinator computes again, to see whether its workers are honest. */
  auditShare: number;
  seed: number;
}

export const defaultWorkload: Workload = {
  prompts: 64,
  samples: 16,
  promptTokens: 256,
  turns: 4,
  toolTokens: 64,
  toolSeconds: 0.5,
  sampledTokens: 400,
  spread: 0.8,
  mostSampledTokens: 2048,
  scorePasses: 1,
  auditShare: 0.01,
  seed: 1,
};

export interface Turn {
  /** Tokens that are evaluated before the turn: the prompt, or a tool's answer. */
  evaluated: number;
  sampled: number;
  /** Seconds of waiting for the tool after it. */
  wait: number;
}

export interface Conversation {
  turns: Turn[];
  /** All of them: what is scored and trained on. */
  tokens: number;
}

/** Lengths are lognormal: most conversations are short, a few are many times longer. */
export function drawConversations(workload: Workload): Conversation[] {
  const random = makeRandom(workload.seed);
  const { prompts, samples, turns, spread, promptTokens, toolTokens, toolSeconds } = workload;
  return Array.from({ length: prompts * samples }, () => {
    const factor = Math.exp(spread * drawNormal(random) - spread ** 2 / 2);
    const sampled = Math.min(workload.mostSampledTokens, workload.sampledTokens * factor);
    return {
      turns: Array.from({ length: turns }, (_, turn) => ({
        evaluated: turn === 0 ? promptTokens : toolTokens,
        sampled: sampled / turns,
        wait: turn === turns - 1 ? 0 : -toolSeconds * Math.log(1 - random()),
      })),
      tokens: promptTokens + sampled + (turns - 1) * toolTokens,
    };
  });
}

/** Tokens of each micro-batch: whole conversations, in order, up to `most` tokens unless one alone is longer. */
export function planMicroBatches(conversations: readonly Conversation[], most: number): number[] {
  const plan: number[] = [];
  for (const { tokens } of conversations) {
    const last = plan.at(-1);
    if (last !== undefined && last + tokens <= most) plan[plan.length - 1] = last + tokens;
    else plan.push(tokens);
  }
  return plan;
}

/** Contiguous parts of nearly equal numbers of micro-batches, as the subtrees of a balanced binary tree are. */
export function cutPlan(plan: readonly number[], parts: number): number[] {
  return Array.from({ length: parts }, (_, i) => {
    const [from, to] = [i, i + 1].map((k) => Math.floor((k * plan.length) / parts));
    return plan.slice(from, to).reduce((total, tokens) => total + tokens, 0);
  });
}
