import type { ChatMessage } from "cria";
import { type Call, writeCall } from "../learn/calls.js";
import type { Truth } from "../learn/judge.js";
import { makeRandom, shuffle } from "../learn/random.js";
import { facts, otherFacts } from "./plain.js";
import { type Design, designs, type Given, guises } from "./tools.js";
import { kinds } from "./values.js";

/** Split by the tools of a question; phrasings and values are held out with "seen" (tools) and "unseen" ones alike. */
export type Split = "train" | "seen" | "unseen";
/** The need of a question: a tool, two in order, or none. */
export type Need = "one" | "two" | "none";

export interface Question extends Truth {
  split: Split;
  need: Need;
  text: string;
  /** The tools that are offered, in the order of the list. */
  offered: string[];
  /** A final answer that does. */
  said: string;
}

export const REFUSAL = "I have no tool for that.";

/** The question of a number: the same number gives the same question. */
export function makeQuestion(seed: number, split: Split, need: Need): Question {
  const random = makeRandom(seed);
  for (let i = 0; i < 8; i++) random();
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const isTrain = split === "train";
  const known = designs.filter((design) => split === "unseen" || !design.isHeldOut);
  const asked = known.filter((design) => split !== "unseen" || design.isHeldOut);
  const draw = (design: Design): Given =>
    Object.fromEntries(
      design.takes.map((kind) => [kind, pick<string | number>(isTrain ? kinds[kind].train : kinds[kind].heldOut)]),
    );
  const phrase = (design: Design) => pick(isTrain ? design.questions : design.otherQuestions);

  /** Three to five tools in some guise: those that are needed, and others. */
  const offer = (needed: readonly Design[], without: readonly Design[] = []) => {
    const size = 3 + Math.floor(random() * 3);
    const others = known.filter((design) => !needed.includes(design) && !without.includes(design));
    const chosen = [...needed, ...shuffle(others, random)].slice(0, size);
    const offered = chosen.map((design) => pick(guises.filter((guise) => guise.design === design)));
    const makeCall = (i: number, given: Given) => ({
      name: offered[i]!.name,
      arguments: Object.fromEntries(Object.entries(offered[i]!.parameters).map(([key, kind]) => [key, given[kind]!])),
    });
    return { offered: shuffle(offered, random).map(({ name }) => name), makeCall };
  };

  if (need === "one") {
    const design = pick(asked);
    const given = draw(design);
    const answer = String(design.answer(given));
    const { offered, makeCall } = offer([design]);
    const said = design.said.replace("{}", answer);
    return { split, need, text: fill(phrase(design), given), offered, calls: [makeCall(0, given)], answer, said };
  }
  if (need === "two") {
    const chains = listChains(known).filter((chain) => chain.some((design) => asked.includes(design)));
    const [first, second] = pick(chains);
    const { kind, phrases, otherPhrases } = first.gives!;
    const given = draw(first);
    const then = { ...draw(second), [kind]: first.answer(given) };
    const middle = fill(pick(isTrain ? phrases : otherPhrases), given);
    const text = fill(phrase(second).replace(new RegExp(`\\{${kind}\\}( dollars)?`), middle), then);
    const { offered, makeCall } = offer([first, second]);
    const answer = String(second.answer(then));
    const said = second.said.replace("{}", answer);
    return { split, need, text, offered, calls: [makeCall(0, given), makeCall(1, then)], answer, said };
  }
  if (random() < 0.5) {
    const [text, answer, said] = pick(isTrain ? facts : otherFacts);
    return { split, need, text, offered: offer([]).offered, calls: [], answer, said };
  }
  const missing = pick(asked);
  const text = fill(phrase(missing), draw(missing));
  return { split, need, text, offered: offer([], [missing]).offered, calls: [], answer: null, said: REFUSAL };
}

/** Pairs of tools in which the second takes the result of the first. */
export function listChains(known: readonly Design[]) {
  return known.flatMap((first) =>
    known
      .filter((second) => first !== second && first.gives !== undefined && second.takes.includes(first.gives.kind))
      .map((second) => [first, second] as const),
  );
}

const fill = (text: string, values: Given) =>
  Object.entries(values).reduce((filled, [name, value]) => filled.replaceAll(`{${name}}`, String(value)), text);

/** The model's chat template knows no tools: the prompt lists them, a line each. */
export function makePrompt({ text, offered }: Pick<Question, "text" | "offered">): ChatMessage[] {
  const lines = offered.map((name) => {
    const { parameters, design } = findGuise(name);
    const list = Object.entries(parameters).map(([key, kind]) => `${key}: ${kinds[kind].type}`);
    return `${name}(${list.join(", ")}): ${design.description}`;
  });
  const rules =
    'Call a tool with <tool_call>{"name": ..., "arguments": {...}}</tool_call>. Answer what needs no tool yourself.';
  return [
    { role: "system", content: `Tools:\n${lines.join("\n")}\n${rules}` },
    { role: "user", content: text },
  ];
}

/** A conversation that meets the question's need. */
export function makeDemonstration(question: Question): ChatMessage[] {
  return [
    ...makePrompt(question),
    ...question.calls.flatMap((call): ChatMessage[] => [
      { role: "assistant", content: writeCall(call) },
      { role: "tool", content: answerCall(call) },
    ]),
    { role: "assistant", content: question.said },
  ];
}

export const findGuise = (name: string) => guises.find((guise) => guise.name === name)!;

/** The tool's answer. */
export function answerCall({ name, arguments: given }: Call): string {
  const { design, parameters } = findGuise(name);
  return String(
    design.answer(Object.fromEntries(Object.entries(parameters).map(([key, kind]) => [kind, given[key]!]))),
  );
}

/** A row of a training, or of a measurement. */
export function makeRow(question: Question) {
  return {
    data_source: `${question.split}/${question.need}`,
    prompt: makePrompt(question),
    reward_model: { style: "rule", ground_truth: { calls: question.calls, answer: question.answer } },
    extra_info: { tool_selection: question.offered },
  };
}
