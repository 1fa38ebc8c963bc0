import type { PolicySequence } from "@cria/core";
import type { Token } from "node-llama-cpp";
import { describeError, type Finding, fine, judge, other } from "../finding.js";
import type { CheckContext, ModelCheck } from "../model-check.js";
import { samplePrompts } from "../sample-text.js";
import { findBound } from "./decode.js";

const STOCK = "greedy, beside stock";
const PROMPTS = 2;
const PROMPT = 20;
const TOKENS = 32;
/**
 * Largest gap to the second likeliest token where the two differ, as a multiple of the bound on logprobs: within it
 * rounding decides. Over quantized weights that is 0.8 nats: of a published model stock llama.cpp's own logprobs are
 * 0.4 away from those without rounding in one of a hundred, and ours as far (docs/real-models.md).
 */
export const NEAR = 40;

type StockLibrary = Pick<typeof import("node-llama-cpp"), "getLlama" | "LlamaLogLevel">;

/**
 * Compares the likeliest tokens with those of node-llama-cpp, whose libraries the engine uses, in a separate process.
 */
export const stockCheck: ModelCheck = {
  name: "stock",
  needsLora: false,
  seconds: 20,
  async run(context) {
    context.begin(STOCK);
    let library: StockLibrary;
    try {
      library = await import("node-llama-cpp");
    } catch {
      return [other("not checked", STOCK, "node-llama-cpp is not installed", "npm install node-llama-cpp@3.22.1")];
    }
    return [await compareGreedy(context, library)];
  },
};

export interface Greedy {
  tokens: number[];
  /** Distances between the likeliest token and the next one, in nats. */
  gaps: number[];
}

export interface Parting {
  /** Number of equal tokens before it. */
  at: number;
  /** The gap at our token there. */
  gap: number;
}

async function compareGreedy(context: CheckContext, library: StockLibrary): Promise<Finding> {
  const { prompts, ours, bound } = await decodeHere(context);
  context.advance(0.5);
  try {
    const theirs = await decodeThere(context, library, prompts);
    return compare(ours, theirs, NEAR * bound);
  } catch (error) {
    return describeError(STOCK, error, "npm install node-llama-cpp@3.22.1");
  }
}

/** The first token that is another, or null. */
export function findParting({ tokens, gaps }: Greedy, theirs: readonly number[]): Parting | null {
  const at = tokens.findIndex((token, t) => token !== theirs[t]);
  return at < 0 ? null : { at, gap: gaps[at]! };
}

/** @param near in nats. */
export function compare(ours: readonly Greedy[], theirs: readonly number[][], near: number): Finding {
  const partings = ours.flatMap((one, i) => findParting(one, theirs[i]!) ?? []);
  const count = ours.reduce((sum, { tokens }) => sum + tokens.length, 0);
  if (partings.length === 0) return fine(STOCK, `${count} tokens of ${ours.length} prompts are the same`);
  const widest = partings.reduce((a, b) => (a.gap > b.gap ? a : b));
  const what = `${partings.length} of ${ours.length} prompts differ, where the next token is ${widest.gap.toPrecision(2)} nats behind (after ${widest.at} equal ones)`;
  if (widest.gap <= near) return fine(STOCK, `${what}: rounding decides there (up to ${near.toPrecision(2)} nats)`);
  return judge(STOCK, false, what, "the two compute different things; report this");
}

async function decodeHere(context: CheckContext): Promise<{ prompts: Int32Array[]; ours: Greedy[]; bound: number }> {
  const model = await context.load({ contextSize: 64, maxSequences: 1, trainable: "none" });
  try {
    const prompts = samplePrompts(model, PROMPTS, PROMPT);
    const ours: Greedy[] = [];
    for (const prompt of prompts) {
      const sequence = model.createSequence();
      ours.push(await decodeGreedily(sequence, prompt, TOKENS));
      sequence.dispose();
    }
    return { prompts, ours, bound: findBound(model.info.weightTypes, context.device) };
  } finally {
    await model.dispose();
  }
}

/** The likeliest tokens of a sequence of the engine, past any stop token. */
export async function decodeGreedily(sequence: PolicySequence, prompt: Int32Array, maxTokens: number): Promise<Greedy> {
  const options = { maxTokens, temperature: 0, stopTokens: [], topLogprobs: 2 };
  const { tokenIds, topLogprobs } = await sequence.generate(prompt, options);
  const gaps = topLogprobs!.map(([first, second]) => first!.logprob - (second?.logprob ?? Number.NEGATIVE_INFINITY));
  return { tokens: [...tokenIds], gaps };
}

async function decodeThere(
  context: CheckContext,
  { getLlama, LlamaLogLevel }: StockLibrary,
  prompts: readonly Int32Array[],
): Promise<number[][]> {
  const { threads } = context;
  const gpu = context.device === "cpu" ? false : context.device;
  const llama = await getLlama({ gpu, build: "never", logLevel: LlamaLogLevel.error, maxThreads: threads });
  try {
    const model = await llama.loadModel({ modelPath: context.path, ignoreMemorySafetyChecks: true });
    const stock = await model.createContext({ contextSize: 64, threads, ignoreMemorySafetyChecks: true });
    const sequence = stock.getSequence();
    const results: number[][] = [];
    for (const prompt of prompts) {
      await sequence.clearHistory();
      const tokens: number[] = [];
      const given = Array.from(prompt, (token) => token as Token);
      for await (const token of sequence.evaluate(given, { temperature: 0, yieldEogToken: true })) {
        tokens.push(token);
        if (tokens.length === TOKENS) break;
      }
      results.push(tokens);
    }
    await stock.dispose();
    await model.dispose();
    return results;
  } finally {
    await llama.dispose();
  }
}
