import { hashSeed } from "@cria/core";
import { calculate, formatNumber } from "@cria/tools";
import type { Random } from "./random.js";

/** Numbers of a problem, by the letter that stands for them in its family's texts and expressions. */
export type Numbers = Record<string, number>;

interface Family {
  name: string;
  draw: (random: Random) => Numbers;
  /** The whole solution; letters are numbers. */
  expression: string;
  /** The same in two calls; `r` is the first one's result. */
  steps: [string, string] | null;
  /** N and M are people, O things, X containers. */
  texts: string[];
}

const small = (random: Random) => random.integer(2, 12);
const large = (random: Random) => random.integer(2, 99);

export const families: readonly Family[] = [
  {
    name: "add",
    draw: (r) => ({ a: large(r), b: large(r) }),
    expression: "a+b",
    steps: null,
    texts: [
      "N has a O. M gives N b more. How many O does N have now?",
      "There are a O in a box and b O in a bag. How many O in total?",
    ],
  },
  {
    name: "sub",
    draw: (r) => {
      const a = r.integer(10, 99);
      return { a, b: r.integer(2, a - 1) };
    },
    expression: "a-b",
    steps: null,
    texts: ["N has a O and loses b. How many O are left?", "N had a O. N gave b to M. How many O does N have now?"],
  },
  {
    name: "mul",
    draw: (r) => ({ a: small(r), b: large(r) }),
    expression: "a*b",
    steps: null,
    texts: ["N has a X with b O each. How many O?", "Each of a kids has b O. How many O in total?"],
  },
  {
    name: "div",
    draw: (r) => {
      const b = small(r);
      return { a: b * r.integer(2, 30), b };
    },
    expression: "a/b",
    steps: null,
    texts: [
      "N shares a O equally among b kids. How many O does each get?",
      "a O are put equally in b X. How many O are in each?",
    ],
  },
  {
    name: "addmul",
    draw: (r) => ({ a: large(r), b: small(r), c: small(r) }),
    expression: "a+b*c",
    steps: ["b*c", "a+r"],
    texts: [
      "N has a O and buys b X of c O. How many O does N have now?",
      "There are a loose O and b X with c O each. How many O in total?",
    ],
  },
  {
    name: "mulsub",
    draw: (r) => {
      const a = small(r);
      const b = r.integer(4, 20);
      return { a, b, c: r.integer(2, Math.min(90, a * b - 1)) };
    },
    expression: "a*b-c",
    steps: ["a*b", "r-c"],
    texts: [
      "N buys a X of b O and loses c. How many O are left?",
      "a X hold b O each. M takes c. How many O are left?",
    ],
  },
  {
    name: "paren",
    draw: (r) => ({ a: r.integer(2, 40), b: r.integer(2, 40), c: small(r) }),
    expression: "(a+b)*c",
    steps: ["a+b", "r*c"],
    texts: [
      "Each day N picks a O and M picks b. How many O do they pick in c days?",
      "A bag has a red and b blue O. How many O are in c bags?",
    ],
  },
  {
    name: "subdiv",
    draw: (r) => {
      const c = small(r);
      const b = r.integer(2, 60);
      return { a: b + c * r.integer(2, 20), b, c };
    },
    expression: "(a-b)/c",
    steps: ["a-b", "r/c"],
    texts: [
      "N has a O, keeps b and shares the rest equally among c kids. How many O does each get?",
      "From a O, b are lost. The rest is put equally in c X. How many O are in each?",
    ],
  },
  {
    name: "mm",
    draw: (r) => ({ a: small(r), b: small(r), c: small(r), d: small(r) }),
    expression: "a*b+c*d",
    steps: ["a*b", "r+c*d"],
    texts: [
      "N has a X of b O and M has c X of d O. How many O in total?",
      "N buys a pens for b dollars each and c books for d dollars each. How many dollars in total?",
    ],
  },
  {
    name: "add3",
    draw: (r) => ({ a: large(r), b: large(r), c: large(r) }),
    expression: "a+b+c",
    steps: ["a+b", "r+c"],
    texts: ["N finds a O on Monday, b on Tuesday and c on Friday. How many O in total?"],
  },
  {
    name: "three",
    draw: (r) => ({ a: r.integer(30, 99), b: small(r), c: small(r), d: r.integer(2, 29) }),
    expression: "a+b*c-d",
    steps: ["b*c", "a+r-d"],
    texts: ["N has a O, buys b X of c O and gives d to M. How many O does N have now?"],
  },
  {
    name: "muldiv",
    draw: (r) => {
      const c = r.integer(2, 9);
      return { a: small(r), b: c * r.integer(2, 9), c };
    },
    expression: "a*b/c",
    steps: ["a*b", "r/c"],
    texts: ["N has a X of b O and shares them equally among c kids. How many O does each get?"],
  },
];

const PEOPLE = "Tom Anna Ben Lucy Max Emma Sam Mia Leo Zoe Jack Lily Noah Ella Omar Nina".split(" ");
const THINGS =
  "apples oranges books pens cards coins shells stickers marbles cookies stamps eggs flowers pencils candies balls".split(
    " ",
  );
const CONTAINERS = "bags boxes packs jars crates baskets".split(" ");

export interface WordProblem {
  family: string;
  question: string;
  numbers: Numbers;
  expression: string;
  steps: [string, string] | null;
  answer: string;
}

/** Letters replaced by numbers (or words). */
export function fillIn(pattern: string, values: Record<string, string | number>): string {
  return pattern.replace(/\b[a-dr]\b|\b[NMOX]\b/g, (letter) => String(values[letter] ?? letter));
}

/**
 * The side of the split that a problem is on. Family and numbers decide, so that wording cannot leak a held-out
 * problem.
 */
export function isHeldOut(family: string, numbers: Numbers): boolean {
  return hashSeed("split", family, ...Object.entries(numbers).flat()) % 8 === 0;
}

/** A problem of the given side of the split, of one family or a random one. */
export function drawProblem(random: Random, side: "train" | "heldOut", familyIndex?: number): WordProblem {
  for (;;) {
    const family = families[familyIndex ?? random.integer(0, families.length - 1)]!;
    const numbers = family.draw(random);
    const [N, M] = random.pickTwo(PEOPLE);
    const text = random.pick(family.texts);
    const words = { N, M, O: random.pick(THINGS), X: random.pick(CONTAINERS) };
    if (isHeldOut(family.name, numbers) !== (side === "heldOut")) continue;
    // "a" is also an English article: numbers are written where the letter stands for one.
    const question = writeQuestion(text, numbers, words);
    const expression = fillIn(family.expression, numbers);
    return {
      family: family.name,
      question,
      numbers,
      expression,
      steps: family.steps,
      answer: formatNumber(calculate(expression)!),
    };
  }
}

function writeQuestion(text: string, numbers: Numbers, words: Record<string, string>): string {
  return text.replace(/\bA bag\b|\bin a (box|bag)\b|\b[a-d]\b|\b[NMOX]\b/g, (match) => {
    if (match.length > 1) return match;
    return String(numbers[match] ?? words[match] ?? match);
  });
}
