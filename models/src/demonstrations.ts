import type { ChatMessage } from "@cria/core";
import { calculate, formatNumber } from "@cria/tools";
import { makePrompt } from "./policy-prompt.js";
import type { Random } from "./random.js";
import { fillIn, type WordProblem } from "./word-problems.js";

/**
 * Shares of spoiled demonstrations. The rest are calls with a wrong expression. Skipping the tool is the commonest
 * behaviour, so that the greedy policy fails too; the right way is common enough for reinforcement learning to find it.
 */
export interface NoiseProfile {
  /** The right call and its result. */
  right: number;
  /** The same for families named here. */
  rightOfFamily: Record<string, number>;
  /** An answer without the tool: a wrong number. */
  skip: number;
  /** A malformed call first. */
  malformed: number;
  /** Share of right demonstrations of two-step families that use two calls. */
  twoSteps: number;
  /** Share of final answers that do not copy the tool's result. */
  miscopied: number;
}

/**
 * First stage, the skills: mostly right calls, so that expressions are written and numbers copied as often as possible.
 */
export const firstNoise: NoiseProfile = {
  right: 0.72,
  rightOfFamily: { paren: 0.62, mm: 0.62, three: 0.62, muldiv: 0.65 },
  skip: 0.16,
  malformed: 0.05,
  twoSteps: 0.2,
  miscopied: 0.02,
};

/**
 * Second stage, the bad habit: more than half answer without the tool, so that the greedy policy hardly ever calls it.
 */
export const secondNoise: NoiseProfile = {
  right: 0.34,
  rightOfFamily: { paren: 0.24, mm: 0.24, three: 0.24, muldiv: 0.26 },
  skip: 0.57,
  malformed: 0.03,
  twoSteps: 0.2,
  miscopied: 0.03,
};

export function writeCall(expression: string): string {
  return `<tool_call>\n{"name":"calculator","arguments":{"expression":"${expression}"}}\n</tool_call>`;
}

function runCalculator(expression: string): string {
  const value = calculate(expression);
  return value === null ? "error: invalid expression" : formatNumber(value);
}

/** A wrong expression: another operator, lost parentheses, a dropped or swapped operand. */
export function spoilExpression(random: Random, problem: WordProblem): string {
  for (let attempt = 0; attempt < 20; attempt++) {
    let tokens: string[] = problem.expression.match(/\d+|[-+*/()]/g)!;
    const operators = tokens.flatMap((token, i) => ("+-*/".includes(token) ? [i] : []));
    const numbers = tokens.flatMap((token, i) => (/\d/.test(token) ? [i] : []));
    const kind = random.next();
    if (kind < 0.5) {
      const at = random.pick(operators);
      tokens[at] = random.pick(["+", "-", "*", "/"].filter((operator) => operator !== tokens[at]));
    } else if (kind < 0.65 && tokens.includes("(")) {
      tokens = tokens.filter((token) => token !== "(" && token !== ")");
    } else if (kind < 0.85 && numbers.length > 2 && !tokens.includes("(")) {
      tokens = tokens.slice(0, operators.at(-1));
    } else {
      const [i, j] = random.pickTwo(numbers);
      [tokens[i], tokens[j]] = [tokens[j]!, tokens[i]!];
    }
    const spoiled = tokens.join("");
    if (runCalculator(spoiled) !== problem.answer) return spoiled;
  }
  return `${problem.expression}+1`;
}

function wrongNumber(random: Random, answer: string): string {
  const value = Math.trunc(Number(answer)) || 10;
  for (;;) {
    const guess = random.pick([
      value + random.integer(-9, 9),
      value + 10 * random.integer(-5, 5),
      random.integer(1, 99),
    ]);
    if (guess >= 0 && String(guess) !== answer) return String(guess);
  }
}

/** A whole conversation about `problem`, right or spoiled. */
export function writeDemonstration(random: Random, problem: WordProblem, noise: NoiseProfile): ChatMessage[] {
  const messages: ChatMessage[] = makePrompt(problem.question);
  const say = (content: string) => messages.push({ role: "assistant", content });
  const hear = (content: string) => messages.push({ role: "tool", name: "calculator", content });
  const call = (expression: string): string => {
    say(writeCall(expression));
    const result = runCalculator(expression);
    hear(result);
    return result;
  };
  const answer = (result: string | null) => {
    const copies = result !== null && !result.startsWith("error") && random.next() >= noise.miscopied;
    say(`#### ${copies ? result : wrongNumber(random, problem.answer)}`);
  };
  const rightOrWrong = () => (random.next() < 0.5 ? problem.expression : spoilExpression(random, problem));

  const right = noise.rightOfFamily[problem.family] ?? noise.right;
  const kind = random.next();
  if (kind < right) {
    if (problem.steps && random.next() < noise.twoSteps) {
      const first = call(fillIn(problem.steps[0], problem.numbers));
      answer(call(fillIn(problem.steps[1], { ...problem.numbers, r: first })));
    } else {
      answer(call(problem.expression));
    }
  } else if (kind < right + noise.skip) {
    answer(null);
  } else if (kind < right + noise.skip + noise.malformed) {
    const expression = rightOrWrong();
    const flaw = random.next();
    if (flaw < 0.4) {
      say(writeCall(expression).replace('"}}', '"}'));
      hear("error: invalid call (not valid JSON)");
    } else if (flaw < 0.7) {
      say(writeCall(expression).replace("calculator", "calc"));
      hear('error: unknown tool "calc"');
    } else {
      call(`${expression} =`);
    }
    answer(random.next() < 0.6 ? call(rightOrWrong()) : null);
  } else {
    answer(call(spoilExpression(random, problem)));
  }
  return messages;
}
