import { describe, expect, it } from "vitest";
import { provideCria } from "../../apps/trainer/src/user-code/provide-cria.js";
import { judge } from "../learn/judge.js";
import { tryLearning } from "../learn/testing.js";
import {
  answerCall,
  listChains,
  makeDemonstration,
  makePrompt,
  makeQuestion,
  makeRow,
  type Need,
  type Question,
  REFUSAL,
  type Split,
} from "./generator.js";
import { facts, otherFacts } from "./plain.js";
import { designs, guises, tools } from "./tools.js";
import { kinds } from "./values.js";

const needs: readonly Need[] = ["one", "two", "none"];
const splits: readonly Split[] = ["train", "seen", "unseen"];
const ask = (split: Split, need: Need, count = 150) =>
  Array.from({ length: count }, (_, i) => makeQuestion(1000 * i, split, need));
const all = splits.flatMap((split) => needs.flatMap((need) => ask(split, need)));

describe("questions", () => {
  it("are the same for the same number, and differ", () => {
    expect(makeQuestion(7, "train", "two")).toEqual(makeQuestion(7, "train", "two"));
    expect(new Set(ask("train", "two").map(({ text }) => text)).size).toBeGreaterThan(80);
  });

  it("need their tools, among three to five offered ones", () => {
    for (const { need, calls, offered, answer } of all) {
      expect(calls).toHaveLength({ one: 1, two: 2, none: 0 }[need]);
      expect(new Set(offered).size).toBe(offered.length);
      expect([3, 4, 5]).toContain(offered.length);
      for (const { name } of calls) expect(offered).toContain(name);
      if (need !== "none") expect(answer).not.toBeNull();
    }
    // Some want a tool that is not there.
    expect(ask("train", "none").filter(({ answer }) => answer === null).length).toBeGreaterThan(40);
  });

  it("keep tools, phrasings and values of held-out rows out of training", () => {
    const heldOut = designs.filter(({ isHeldOut }) => isHeldOut).flatMap(({ names }) => names);
    expect(heldOut).toHaveLength(4);
    expect(designs).toHaveLength(33);
    expect(new Set(guises.map(({ name }) => name)).size).toBe(29 * 3 + 4);
    for (const { offered, split, need, calls } of all) {
      if (split !== "unseen") for (const name of heldOut) expect(offered).not.toContain(name);
      else if (need !== "none") expect(calls.some(({ name }) => heldOut.includes(name))).toBe(true);
    }
    for (const { names, questions, otherQuestions, gives } of designs) {
      for (const [own, others] of [
        [questions, otherQuestions],
        [gives?.phrases ?? [], gives?.otherPhrases ?? []],
      ] as const)
        expect(
          own.filter((text) => others.includes(text)),
          names[0],
        ).toEqual([]);
    }
    for (const [kind, values] of Object.entries(kinds)) {
      const known: readonly (string | number)[] = values.train;
      expect(
        values.heldOut.filter((value) => known.includes(value)),
        kind,
      ).toEqual([]);
    }
    expect(facts.filter(([text]) => otherFacts.some(([other]) => other === text))).toEqual([]);
    const valuesOf = (split: Split) =>
      new Set(
        needs
          .flatMap((need) => ask(split, need))
          .flatMap(({ calls }) =>
            calls.flatMap((call) =>
              Object.entries(call.arguments).map(([key, value]) => `${call.name} ${key} ${value}`),
            ),
          ),
      );
    const trained = valuesOf("train");
    expect([...valuesOf("seen"), ...valuesOf("unseen")].filter((value) => trained.has(value))).toEqual([]);
    const texts = new Set(ask("train", "one").map(({ text }) => text));
    expect(ask("seen", "one").filter(({ text }) => texts.has(text))).toEqual([]);
  });

  it("have no gap left, and the second call takes the result of the first", () => {
    for (const question of all) expect(question.text).not.toMatch(/[{}]|undefined/);
    expect(listChains(designs.filter(({ isHeldOut }) => !isHeldOut)).length).toBeGreaterThan(5);
    for (const { calls } of ask("unseen", "two")) {
      expect(Object.values(calls[1]!.arguments).map(String)).toContain(answerCall(calls[0]!));
    }
  });

  it("are rows that name their tools, and lists of them that the model reads", () => {
    const question = makeQuestion(3, "seen", "one");
    expect(makeRow(question)).toMatchObject({
      data_source: "seen/one",
      extra_info: { tool_selection: question.offered },
    });
    const lines = String(makePrompt(question)[0]!.content).split("\n").slice(1, -1);
    expect(lines.map((line) => line.slice(0, line.indexOf("(")))).toEqual(question.offered);
  });
});

describe("tools", () => {
  it("answer as the questions expect, and refuse arguments of another type", async () => {
    for (const { calls, answer } of [...ask("unseen", "one", 30), ...ask("seen", "two", 30)])
      for (const [i, { name, arguments: given }] of calls.entries()) {
        const tool = tools.find(({ schema }) => schema.function.name === name)!;
        const { response } = await tool.execute("", given);
        if (i === calls.length - 1) expect(response.text).toBe(answer);
      }
    const tip = tools.find(({ schema }) => schema.function.name === "tip")!;
    expect((await tip.execute("", { amount: "40", percent: 10 })).response.text).toMatch(/invalid arguments/);
  });
});

describe("the judge", () => {
  const mistakeOf = (question: Question, change: (messages: { role: string; content: unknown }[]) => void) => {
    const messages = makeDemonstration(question).map((message) => ({ ...message }));
    change(messages);
    return judge(messages, question).mistake;
  };
  const one = makeQuestion(0, "train", "one");
  const two = makeQuestion(0, "train", "two");
  const fact = ask("train", "none").find(({ answer }) => answer !== null)!;
  const missing = ask("train", "none").find(({ answer }) => answer === null)!;
  const call = (name: string, given: object) => `<tool_call>${JSON.stringify({ name, arguments: given })}</tool_call>`;

  type Change = (messages: { role: string; content: unknown }[]) => void;
  const say =
    (at: number, content: unknown): Change =>
    (messages) => {
      messages.at(at)!.content = content;
    };

  it("accepts every demonstration", () => {
    for (const question of all)
      expect(
        mistakeOf(question, () => {}),
        question.text,
      ).toBeNull();
  });

  it.each<[string, Question, Change]>([
    ["wrong tool", one, say(2, call("nothing", one.calls[0]!.arguments))],
    ["wrong arguments", one, say(2, call(one.calls[0]!.name, {}))],
    ["wrong arguments", one, say(2, call(one.calls[0]!.name, { ...one.calls[0]!.arguments, more: 1 }))],
    ["broken call", one, say(2, '<tool_call>{"name": </tool_call>')],
    ["no call", one, (m) => void m.splice(2, 2)],
    ["one call too many", one, (m) => void m.splice(4, 0, m[2]!, m[3]!)],
    ["no final answer", one, (m) => void m.pop()],
    ["wrong answer", one, say(-1, "I do not know.")],
    ["wrong answer", one, say(-1, REFUSAL)],
    ["missing second call", two, (m) => void m.splice(4, 2)],
    ["wrong tool", two, (m) => void m.splice(2, 2)],
    ["wrong answer", two, (m) => say(-1, m[3]!.content)(m)],
    ["call where none is needed", fact, (m) => void m.splice(2, 0, { role: "assistant", content: call("tip", {}) })],
    ["call where none is needed", missing, (m) => void m.splice(2, 0, { role: "assistant", content: call("tip", {}) })],
    ["wrong answer", fact, say(-1, "Fish.")],
    ["wrong answer", missing, say(-1, "It is 12 degrees.")],
  ])("refuses: %s", (mistake, question, change) => {
    expect(mistakeOf(question, change)).toBe(mistake);
  });

  it("gives a little for right calls before the first mistake", () => {
    const shareOf = (question: Question, made: Change) => {
      const messages = makeDemonstration(question).map((message) => ({ ...message }));
      made(messages);
      return judge(messages, question).calls;
    };
    expect(shareOf(two, (m) => void m.splice(4, 2))).toBe(0.5);
    expect(shareOf(two, say(-1, "I do not know."))).toBe(1);
    expect(shareOf(one, (m) => void m.splice(4, 0, m[2]!, m[3]!))).toBe(0.5);
    expect(shareOf(one, say(2, call("nothing", {})))).toBe(0);
    expect(shareOf(fact, (m) => void m.splice(2, 0, { role: "assistant", content: call("tip", {}) }))).toBe(0);
  });

  it("wants numbers as numbers, and the whole value in the answer", () => {
    const question = { ...one, calls: [{ name: "tip", arguments: { bill: 41, percent: 10 } }], answer: "4.1" };
    const judgeTip = (given: object, answer: string) =>
      judge(
        [
          { role: "assistant", content: call("tip", given) },
          { role: "assistant", content: answer },
        ],
        question,
      ).mistake;
    expect(judgeTip({ percent: 10, bill: 41 }, "The tip is 4.1 dollars.")).toBeNull();
    expect(judgeTip({ bill: 41, percent: 10 }, "4.1.")).toBeNull();
    expect(judgeTip({ bill: "41", percent: 10 }, "The tip is 4.1 dollars.")).toBe("wrong arguments");
    for (const wrong of ["The tip is 4.12 dollars.", "It is 14.1.", "4.1\n4.2", "It is 4.1:30"])
      expect(judgeTip({ bill: 41, percent: 10 }, wrong)).toBe("wrong answer");
  });
});

it("the whole program: measured, taught, measured, trained, measured, with a policy that does not learn it", async () => {
  // Here the sources run: the tools and the reward that the config names must be of them too.
  await provideCria();
  const questions = needs.map((need) => makeQuestion(1, "train", need));
  const { learned, stages } = await tryLearning(import.meta.dirname, {
    rows: questions.map(makeRow),
    demonstrations: questions.map((question) => ({ messages: makeDemonstration(question) })),
  });
  expect(stages).toEqual(["untouched", "sft", "rl"]);
  for (const success of [learned.untouched, learned.sft, learned.rl])
    expect(success).toMatchObject({ "train/one": { rows: 1 }, "train/two": { rows: 1 }, "train/none": { rows: 1 } });
  expect(learned.successes).toHaveLength(1);
});
