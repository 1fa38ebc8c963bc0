import { join } from "node:path";
import type { ChatMessage, GenerateResult } from "@cria/core";
import type { LlamaModel, LlamaSequence } from "@cria/engine";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { CalculatorTool } from "@cria/tools";
import { readLines } from "../lines.js";

const examples = join(import.meta.dirname, "..", "..", "examples");
const calculator = new CalculatorTool();

/** Tokens of a prompt, and of what follows a turn; none: the conversation ends. */
export interface Problem {
  prompt: Int32Array;
  answer(turn: GenerateResult): Promise<Int32Array | null>;
}

interface Row {
  prompt: ChatMessage[];
}

export interface Group {
  /** Turns of each conversation. */
  turns: GenerateResult[][];
  sampled: number;
}

export interface Talk {
  samples: number;
  maxTokens: number;
  seed: number;
}

/** The demo's problems: the policy calls the calculator, reads its answer, and answers. */
export function listCalculatorProblems(model: LlamaModel): Problem[] {
  const tokenizer = DeltaTokenizer.forModel(model);
  return readLines<Row>(join(examples, "calculator", "data", "train.jsonl")).map(({ prompt }) => ({
    prompt: tokenizer.encodePrompt(prompt, [calculator.schema]),
    answer: async ({ text, finishReason }) => {
      const [, expression] = /"expression": *"([^"]*)"/.exec(text) ?? [];
      if (expression === undefined) return null;
      const { response } = await calculator.execute("", { expression });
      const content = response.text ?? "";
      return tokenizer.encodeDelta([{ role: "tool", name: "calculator", content }], finishReason === "stop");
    },
  }));
}

/** Problems of GSM8K that a published model answers in words. */
export function listGsm8kProblems(model: LlamaModel): Problem[] {
  const tokenizer = DeltaTokenizer.forModel(model);
  const rows = ["train", "test"].flatMap((split) =>
    readLines<{ question: string }>(join(examples, "gsm8k", "sample", `${split}.jsonl`)),
  );
  return rows.map(({ question }) => {
    const content = `${question} Think step by step, and end with "#### " and the number.`;
    return { prompt: tokenizer.encodePrompt([{ role: "user", content }]), answer: async () => null };
  });
}

/** Questions of examples/tool-choice, of which the first turn alone is sampled: a call, or an answer. */
export function listToolChoiceProblems(model: LlamaModel, rows: string): Problem[] {
  const tokenizer = DeltaTokenizer.forModel(model);
  return readLines<Row>(rows).map(({ prompt }) => ({
    prompt: tokenizer.encodePrompt(prompt),
    answer: async () => null,
  }));
}

/** Prompts of tokens that mean nothing. */
export function listRandomProblems(model: LlamaModel, count: number): Problem[] {
  const take = (i: number, t: number) =>
    300 + ((7919 * (i + 1) + 104_729 * (t + 1) * (i + 3)) % (model.info.vocabSize - 600));
  return Array.from({ length: count }, (_, i) => ({
    prompt: Int32Array.from({ length: 32 }, (_, t) => take(i, t)),
    answer: async () => null,
  }));
}

/** A group of conversations of one problem, at temperature 1. */
export async function sampleGroup(
  model: LlamaModel,
  problem: Problem,
  { samples, maxTokens, seed }: Talk,
): Promise<Group> {
  const turns = await Promise.all(
    Array.from({ length: samples }, async (_, i) => {
      const sequence = model.createSequence();
      try {
        return await converse(sequence, problem, { maxTokens, seed: 1000 * seed + i });
      } finally {
        sequence.dispose();
      }
    }),
  );
  return { turns, sampled: turns.flat().reduce((sum, { tokenIds }) => sum + tokenIds.length, 0) };
}

async function converse(sequence: LlamaSequence, problem: Problem, options: { maxTokens: number; seed: number }) {
  const turns = [await sequence.generate(problem.prompt, { ...options, temperature: 1 })];
  const delta = await problem.answer(turns[0]!);
  if (delta) turns.push(await sequence.generate(delta, { ...options, temperature: 1 }));
  return turns;
}
