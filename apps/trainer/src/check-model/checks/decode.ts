import type { GenerateResult } from "@cria/core";
import type { LlamaModel } from "@cria/engine";
import { type Finding, fine, judge, other } from "../finding.js";
import type { CheckContext, CheckJob, ModelCheck } from "../model-check.js";
import { fillAdapter, samplePrompts } from "../sample-text.js";

const SCORE = "decoding and score agree";
const BATCH = "alone and in a batch";
const THREADS = "one and more threads";
const STOP = "stop tokens stop";

const CONVERSATIONS = 6;
/** Tokens of each conversation. */
const PROMPT = 20;
const SAMPLED = 20;
const OPTIONS = { contextSize: 64, maxSequences: CONVERSATIONS, lora: { rank: 8, alpha: 16 } };
const ADAPTER_SCALE = 0.01;

/**
 * Largest mean distance in nats between the logprobs of decoding and those of `score`. With F32 weights only the order
 * of sums differs; with others a last bit can flip the rounding of an activation, which then spreads through the
 * layers.
 */
export const scoreBounds: Readonly<Record<string, number>> = { f32: 1e-4, f16: 1e-2, bf16: 2e-2 };
export const QUANTIZED_BOUND = 2e-2;

export const decodeCheck: ModelCheck = {
  name: "decode",
  needsLora: true,
  seconds: 30,
  async run(context) {
    context.begin(SCORE);
    const model = await context.load(OPTIONS);
    const findings: Finding[] = [];
    let together: GenerateResult[];
    try {
      await fillAdapter(model, ADAPTER_SCALE);
      together = await generate(model, CONVERSATIONS);
      context.advance(0.2);
      findings.push(await compareWithScore(context, model, together));
      context.advance(0.3);
      context.begin(BATCH);
      await model.flushCache();
      const alone = await generate(model, 1);
      findings.push(compareBits(BATCH, together, alone, `${CONVERSATIONS} conversations`));
      context.advance(0.7);
      context.begin(STOP);
      findings.push(await checkStop(model, together[0]!));
    } finally {
      await model.dispose();
    }
    context.begin(THREADS);
    if (context.device === "cpu") findings.push(await checkThreads(context, together));
    return findings;
  },
};

/** Generates all conversations, `width` at once. */
async function generate(model: LlamaModel, width: number): Promise<GenerateResult[]> {
  const results: GenerateResult[] = [];
  const prompts = samplePrompts(model, CONVERSATIONS, PROMPT);
  for (let first = 0; first < prompts.length; first += width) {
    const group = prompts.slice(first, first + width).map(async (prompt, i) => {
      const sequence = model.createSequence();
      const result = await sequence.generate(prompt, { maxTokens: SAMPLED, stopTokens: [], seed: first + i });
      sequence.dispose();
      return result;
    });
    results.push(...(await Promise.all(group)));
    await model.flushCache();
  }
  return results;
}

async function compareWithScore(
  context: CheckContext,
  model: LlamaModel,
  results: readonly GenerateResult[],
): Promise<Finding> {
  const prompts = samplePrompts(model, CONVERSATIONS, PROMPT);
  const scores = await model.score(
    results.map(({ tokenIds }, i) => ({ tokenIds: [...prompts[i]!, ...tokenIds], from: prompts[i]!.length })),
  );
  const distances = results.flatMap(({ logprobs }, i) =>
    Array.from(logprobs, (value, t) => Math.abs(value - scores[i]!.logprobs[prompts[i]!.length + t]!)),
  );
  const mean = distances.reduce((sum, value) => sum + value, 0) / distances.length;
  const bound = findBound(model.info.weightTypes, context.device);
  const most = distances.reduce((a, b) => Math.max(a, b), 0);
  const found = `${distances.length} sampled tokens: ${formatSmall(mean)} nats apart on average, ${formatSmall(most)} at most (bound of the average ${bound})`;
  return judge(
    SCORE,
    mean <= bound,
    found,
    "train with the logprobs of score: set algorithm.rollout_correction, and report this",
  );
}

/**
 * The bound of the roughest type among the weights. A GPU's tensor cores round operands of F32 to ten bits, as those of
 * F16.
 */
export function findBound(types: Readonly<Record<string, number>>, device: CheckJob["device"]): number {
  const least = device === "cpu" ? 0 : scoreBounds.f16!;
  return Math.max(least, ...Object.keys(types).map((type) => scoreBounds[type] ?? QUANTIZED_BOUND));
}

export function compareBits(
  name: string,
  expected: readonly GenerateResult[],
  received: readonly GenerateResult[],
  what: string,
): Finding {
  const differs = expected.findIndex(
    ({ tokenIds, logprobs }, i) => !isSame(tokenIds, received[i]!.tokenIds) || !isSame(logprobs, received[i]!.logprobs),
  );
  if (differs < 0) return fine(name, `${what}: the same tokens and the same bits of every logprob`);
  const { logprobs } = expected[differs]!;
  const at = Array.from(logprobs).findIndex((value, t) => value !== received[differs]!.logprobs[t]);
  const found = `conversation ${differs + 1} differs from its sampled token ${at + 1} on: ${logprobs[at]} and ${received[differs]!.logprobs[at]}`;
  return other("falls short", name, found, "a seed will not give the same conversation again; report this");
}

/** Both arguments have the same type: Int32Array or Float32Array. */
const isSame = (a: ArrayLike<number>, b: ArrayLike<number>): boolean =>
  a.length === b.length && Array.prototype.every.call(a, (value, i) => value === b[i]);

/** Declares a sampled token as the stop token of a turn, and checks that the turn ends there. */
async function checkStop(model: LlamaModel, { tokenIds }: GenerateResult): Promise<Finding> {
  const stop = tokenIds[Math.floor(tokenIds.length / 2)]!;
  const at = tokenIds.indexOf(stop);
  const sequence = model.createSequence();
  const [prompt] = samplePrompts(model, CONVERSATIONS, PROMPT);
  const result = await sequence.generate(prompt!, { maxTokens: SAMPLED, stopTokens: [stop], seed: 0 });
  sequence.dispose();
  const isRight = result.finishReason === "stop" && result.tokenIds.length === at + 1;
  const found = `token ${stop} ends a turn after ${result.tokenIds.length} of ${at + 1} tokens (${result.finishReason})`;
  return judge(STOP, isRight, found, "turns would run on; report this");
}

async function checkThreads(context: CheckContext, expected: readonly GenerateResult[]): Promise<Finding> {
  const threads = context.threads > 1 ? 1 : 2;
  const model = await context.load({ ...OPTIONS, threads });
  try {
    await fillAdapter(model, ADAPTER_SCALE);
    return compareBits(THREADS, expected, await generate(model, CONVERSATIONS), `${context.threads} and ${threads}`);
  } finally {
    await model.dispose();
  }
}

/** 0.000123 as "1.2e-4". */
export const formatSmall = (value: number): string => (value === 0 ? "0" : value.toExponential(1));
