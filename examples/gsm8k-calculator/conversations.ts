import type { ChatMessage } from "cria";
import { makeRandom, shuffle } from "../learn/random.js";
import { writeCall } from "./calls.js";
import type { Problem, Step } from "./problems.js";

type Solved = Problem & { steps: Step[] };

const system = `Solve the problem. ${writeCall("6*7")} asks the calculator. End with #### and the number.`;

export const makePrompt = ({ question }: Pick<Problem, "question">): ChatMessage[] => [
  { role: "system", content: system },
  { role: "user", content: question },
];

/** The solution as turns: each ends with a sum, the calculator answers, and the last one is only the answer. */
export const makeDemonstration = ({ steps, answer, ...problem }: Pick<Solved, "question" | "answer" | "steps">) => [
  ...makePrompt(problem),
  ...steps.flatMap(({ text, expression, value }): ChatMessage[] => [
    { role: "assistant", content: `${text} ${writeCall(expression)}`.trimStart() },
    { role: "tool", content: value },
  ]),
  { role: "assistant" as const, content: `#### ${answer}` },
];

/** A row of a training, or of a measurement. */
export const makeRow = (problem: Pick<Problem, "question" | "answer">, split: "train" | "test") => ({
  data_source: `gsm8k/${split}`,
  prompt: makePrompt(problem),
  reward_model: { style: "rule", ground_truth: problem.answer },
});

/** Characters that are read and sampled. */
const length = (problem: Solved) =>
  makeDemonstration(problem).reduce((sum, { content }) => sum + String(content).length, 0);

/**
 * The shortest problems that can be demonstrated, in a random order that is always the same: the first are for
 * demonstrations, and those after them, which are as hard, for reinforcement learning.
 */
export function chooseProblems(problems: readonly Problem[], counts: { demonstrations: number; rows: number }) {
  const solved = problems.filter((problem): problem is Solved => problem.steps !== null);
  const texts = new Set<string>();
  const distinct = solved.filter(({ question }) => !texts.has(question) && texts.add(question));
  const short = distinct.sort((a, b) => length(a) - length(b)).slice(0, counts.demonstrations + counts.rows);
  const mixed = shuffle(short, makeRandom(1));
  return { demonstrations: mixed.slice(0, counts.demonstrations), rows: mixed.slice(counts.demonstrations) };
}
