import { join } from "node:path";
import type { ChatMessage, RewardInfo } from "cria";
import { describe, expect, it } from "vitest";
import { provideCria } from "../../apps/trainer/src/user-code/provide-cria.js";
import { tryLearning } from "../learn/testing.js";
import { parse, writeCall } from "./calls.js";
import { chooseProblems, makeDemonstration, makeRow } from "./conversations.js";
import { type Problem, readProblems, readSteps } from "./problems.js";
import { readAnswer, score } from "./reward.js";

const sample = join(import.meta.dirname, "..", "gsm8k", "sample");
const natalia =
  "Natalia sold 48/2 = <<48/2=24>>24 clips in May.\nNatalia sold 48+24 = <<48+24=72>>72 clips altogether in April and May.\n#### 72";

describe("solutions", () => {
  it("become steps: text, the calculator's expression, and its value", () => {
    expect(readSteps(natalia, "72")).toEqual([
      { text: "Natalia sold", expression: "48/2", value: "24" },
      { text: "clips in May.\nNatalia sold", expression: "48+24", value: "72" },
    ]);
    // Money, a sum with units, commas in a value, another spelling of the same number.
    const prices =
      "At $2 each it is 3 x $.5 = $<<3*.5=1.50>>1.50.\nIn all 1.5*2,000 = $<<1.5*2000=3000>>3,000 dollars.";
    expect(readSteps(prices, "3000")).toEqual([
      { text: "At $2 each it is", expression: "3*.5", value: "1.5" },
      { text: "In all", expression: "1.5*2000", value: "3000" },
    ]);
  });

  it.each([
    ["without a sum", "It is 72.", "72"],
    ["with a sum that is wrong", "<<48/2=25>>25 clips", "25"],
    ["whose last sum is not the answer", "<<48/2=24>>24 clips", "72"],
    ["with what the calculator cannot read", "<<50%*48=24>>24 clips", "24"],
    ["whose value has more decimals than the calculator gives", "<<1/3=0.333>>0.333", "0.333"],
  ])("%s are no demonstrations", (_what, solution, answer) => {
    expect(readSteps(solution, answer)).toBeNull();
  });

  it("are read from files as they are published", async () => {
    const problems = await readProblems(sample, "train");
    expect(problems).toHaveLength(8);
    expect(problems.filter(({ steps }) => steps !== null).length).toBeGreaterThan(5);
    await expect(readProblems(join(sample, "missing"), "train")).rejects.toMatchObject({ subject: /missing/ });
  });
});

describe("demonstrations", () => {
  it("are turns that the parser reads, and earn 1", async () => {
    for (const problem of [...(await readProblems(sample, "train")), ...(await readProblems(sample, "test"))]) {
      if (problem.steps === null) continue;
      const messages = makeDemonstration({ ...problem, steps: problem.steps });
      const turns = messages.filter(({ role }) => role === "assistant").map(({ content }) => String(content));
      expect(turns).toHaveLength(problem.steps.length + 1);
      expect(turns.slice(0, -1).map((turn) => parse(turn).calls)).toEqual(
        problem.steps.map(({ expression }) => [{ name: "calculator", arguments: { expression } }]),
      );
      expect(parse(turns.at(-1)!).calls).toEqual([]);
      expect(earn(messages, problem.answer)).toEqual({ score: 1, acc: 1 });
    }
  });

  it("are the shortest; rows are others, as hard, and each choice is the same", () => {
    const problems = Array.from({ length: 40 }, (_, i): Problem => {
      const text = "one more ".repeat(i);
      // Two of a question, and some that cannot be demonstrated.
      return {
        question: `${text}${i === 5 ? "" : i}`,
        answer: "2",
        steps: i % 4 === 3 ? null : [{ text, expression: "1+1", value: "2" }],
      };
    });
    const counts = { demonstrations: 8, rows: 6 };
    const { demonstrations, rows } = chooseProblems([...problems, ...problems], counts);
    expect(chooseProblems(problems, counts)).toEqual({ demonstrations, rows });
    expect([demonstrations.length, rows.length]).toEqual([8, 6]);
    const questions = [...demonstrations, ...rows].map(({ question }) => question);
    expect(new Set(questions).size).toBe(14);
    const shortest = problems.filter(({ steps }) => steps !== null).slice(0, 14);
    expect(new Set(questions)).toEqual(new Set(shortest.map(({ question }) => question)));
    expect(demonstrations).not.toEqual(shortest.slice(0, 8));
  });
});

describe("calls", () => {
  it("are the texts in double brackets, and the rest is content", () => {
    expect(parse(`Natalia sold ${writeCall("48/2")}`)).toEqual({
      content: "Natalia sold ",
      calls: [{ name: "calculator", arguments: { expression: "48/2" } }],
    });
    expect(parse("1 < 2, 5 >> 6, <<3+4").calls).toEqual([]);
    expect(parse("<<1+1>> <<2+2>>").calls).toHaveLength(2);
  });
});

const earn = (messages: ChatMessage[], truth: string) => score("", "", truth, { messages } as unknown as RewardInfo);

describe("the reward", () => {
  it("is 1 for the number in its form, and 0 for all else", () => {
    const say = (content: string) => earn([{ role: "assistant", content }], "72");
    for (const right of ["#### 72", "So it is\n#### 72\n", "#### 72.0"])
      expect(say(right)).toEqual({ score: 1, acc: 1 });
    for (const wrong of [
      "#### 73",
      "#### 720",
      "72",
      "#### 72 clips",
      "#### 72\n#### 72.",
      "It is #### 72",
      "####72",
      "",
    ])
      expect(say(wrong), wrong).toEqual({ score: 0, acc: 0 });
    expect(earn([], "72")).toEqual({ score: 0, acc: 0 });
    // A turn that also asks for a sum is no answer, and an earlier turn counts for nothing.
    expect(say("<<70+2>>\n#### 72")).toEqual({ score: 0, acc: 0 });
    const turns = ["#### 72", "I am not sure."].map((content): ChatMessage => ({ role: "assistant", content }));
    expect(earn(turns, "72")).toEqual({ score: 0, acc: 0 });
    expect(readAnswer("#### -1.5")).toBe(-1.5);
  });
});

it("the whole program, with a policy that does not learn it", async () => {
  // Here the sources run: the parser and the reward that the config names must be of them too.
  await provideCria();
  const problem = { question: "Tom has 3 balls and 4 cups. How many in all?", answer: "7" };
  const steps = [{ text: "In all it is", expression: "3+4", value: "7" }];
  const { learned, stages } = await tryLearning(import.meta.dirname, {
    rows: [makeRow(problem, "test"), makeRow({ ...problem, answer: "8" }, "test")],
    demonstrations: [{ messages: makeDemonstration({ ...problem, steps }) }],
  });
  expect(stages).toEqual(["untouched", "sft", "rl"]);
  for (const success of [learned.untouched, learned.sft, learned.rl]) expect(success["gsm8k/test"]!.rows).toBe(2);
  expect(learned.successes).toHaveLength(1);
});
