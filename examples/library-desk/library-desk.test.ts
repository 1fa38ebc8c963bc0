import type { ChatMessage, RewardInfo } from "cria";
import { describe, expect, it } from "vitest";
import { provideCria } from "../../apps/trainer/src/user-code/provide-cria.js";
import { writeCall } from "../learn/calls.js";
import { judge } from "../learn/judge.js";
import { tryLearning } from "../learn/testing.js";
import { catalogue, loan, makeCatalogue, search } from "./desk.js";
import { makeDemonstration, makeRequest, makeRow, phrasings, type Split } from "./requests.js";
import { score } from "./reward.js";

const ask = (split: Split, count = 300) => Array.from({ length: count }, (_, i) => makeRequest(1000 * i, split));

describe("the desk", () => {
  it("has the same books for the same seed, each with a title and an id of its own", () => {
    expect(makeCatalogue(1)).toEqual(catalogue);
    expect(makeCatalogue(2)).not.toEqual(catalogue);
    expect(new Set(catalogue.map(({ title }) => title.toLowerCase())).size).toBe(catalogue.length);
    expect(new Set(catalogue.map(({ id }) => id)).size).toBe(catalogue.length);
    for (const { id, due } of catalogue) {
      expect(String(id)).toMatch(/^\d{4}$/);
      expect(due).toMatch(/^\d{1,2} [A-Z][a-z]+$/);
    }
  });

  it("finds books by title and lends them by id", async () => {
    const [{ title, id, due }] = catalogue as [(typeof catalogue)[0]];
    expect((await search.execute("", { title })).response.text).toBe(String(id));
    expect((await search.execute("", { title: "War and Peace" })).response.text).toMatch(/^error/);
    await loan.create("a");
    await loan.create("b");
    expect((await loan.execute("a", { id })).response.text).toBe(due);
    expect((await loan.execute("a", { id })).response.text).toMatch(/^error/);
    // Another conversation has the same books.
    expect((await loan.execute("b", { id })).response.text).toBe(due);
    expect((await loan.execute("b", { id: 1 })).response.text).toMatch(/^error/);
    expect((await loan.execute("b", { id: String(id) })).response.text).toMatch(/invalid arguments/);
    await loan.release("a");
    await loan.release("b");
  });
});

describe("requests", () => {
  it("are the same for the same number, and differ", () => {
    expect(makeRequest(7, "train")).toEqual(makeRequest(7, "train"));
    expect(new Set(ask("train").map(({ text }) => text)).size).toBeGreaterThan(250);
  });

  it("keep titles and phrasings of held-out rows out of training", () => {
    const titles = (split: Split) => new Set(ask(split).map(({ book }) => book.title));
    expect([...titles("held-out")].filter((title) => titles("train").has(title))).toEqual([]);
    expect(catalogue.filter(({ isHeldOut }) => isHeldOut)).toHaveLength(200);
    for (const { book } of ask("train")) expect(book.isHeldOut).toBe(false);
    for (const { book } of ask("held-out")) expect(book.isHeldOut).toBe(true);
    expect(phrasings["held-out"].filter((text) => phrasings.train.includes(text))).toEqual([]);
    for (const { text, book } of [...ask("train"), ...ask("held-out")]) {
      expect(text).toContain(book.title);
      expect(text).not.toMatch(/[{}]/);
    }
  });
});

describe("the reward", () => {
  const request = makeRequest(0, "train");
  const { title, id, due } = request.book;
  const truth = makeRow(request).reward_model.ground_truth;
  const earn = (messages: ChatMessage[]) => score("", "", truth, { messages } as unknown as RewardInfo);
  const earnOf = (...turns: string[]) => earn(turns.map((content) => ({ role: "assistant", content })));
  const calls = {
    search: writeCall({ name: "search", arguments: { title } }),
    loan: writeCall({ name: "loan", arguments: { id } }),
  };

  it("is 1 for every demonstration, whose tools answer as the real ones", async () => {
    for (const split of ["train", "held-out"] as const)
      for (const each of ask(split, 50)) {
        const messages = makeDemonstration(each);
        expect(judge(messages, makeRow(each).reward_model.ground_truth)).toEqual({ mistake: null, calls: 1 });
        const found = await search.execute("", { title: each.book.title });
        expect(messages[3]!.content).toBe(found.response.text);
      }
    expect(earn(makeDemonstration(request))).toEqual({ score: 1, acc: 1 });
  });

  it.each<[string, number, string[]]>([
    ["no call", 0, [`It is due on ${due}.`]],
    ["another title", 0, [writeCall({ name: "search", arguments: { title: "The" } }), "I do not know."]],
    ["an id that was not searched", 0, [calls.loan, `It is due on ${due}.`]],
    ["the search alone", 0.1, [calls.search, `It is due on ${due}.`]],
    ["an id as a text", 0.1, [calls.search, calls.loan.replace(String(id), `"${id}"`), `It is due on ${due}.`]],
    ["no answer", 0.2, [calls.search, calls.loan]],
    ["another date", 0.2, [calls.search, calls.loan, "It is due on 31 May."]],
    ["the id for the date", 0.2, [calls.search, calls.loan, `It is due on ${id}.`]],
  ])("of %s: %d", (_mistake, expected, turns) => {
    const earned = earnOf(...turns) as { score: number; acc: number };
    expect(earned.score).toBeCloseTo(expected);
    expect(earned.acc).toBe(0);
  });
});

it("the whole program, with a policy that does not learn it", async () => {
  // Here the sources run: the tools and the reward that the config names must be of them too.
  await provideCria();
  const requests = ask("train", 2);
  const { learned, stages } = await tryLearning(import.meta.dirname, {
    rows: requests.map(makeRow),
    demonstrations: requests.map((request) => ({ messages: makeDemonstration(request) })),
  });
  expect(stages).toEqual(["untouched", "sft", "rl"]);
  for (const success of [learned.untouched, learned.sft, learned.rl])
    expect(success).toEqual({ "library-desk": { rows: 2, success: 0 } });
  expect(learned.successes).toEqual([0]);
});
