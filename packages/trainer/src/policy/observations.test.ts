import type { ChatMessage, ToolSchema, TurnRecord } from "@cria/core";
import { ChatTemplate, DeltaTokenizer } from "@cria/tokenizer-delta";
import { AddedTokens, BundledVocabulary } from "@cria/tokenizer-delta/testing";
import { defineToolSchema } from "@cria/tools";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readToolTemplate, toolTemplateCases } from "../testing/tool-template-cases.js";
import { markObservations } from "./observations.js";

const turn = (start: number, end: number, more: Partial<TurnRecord> = {}): TurnRecord => ({
  ...{ role: "tool", start, end, startedAt: 0, endedAt: 0 },
  ...more,
});
const timelineOf = (...turns: TurnRecord[]) => ({ loop: [], request: [], turns });
const tool = (content: ChatMessage["content"]): ChatMessage => ({ role: "tool", content });
const said: ChatMessage = { role: "assistant", content: "" };

/** A conversation whose tokens are the given texts. */
function write(pieces: readonly string[]) {
  const tokenIds = Int32Array.from(pieces, (_, i) => i);
  return { tokenIds, detokenize: (ids: ArrayLike<number>) => Array.from(ids, (id) => pieces[id]).join("") };
}

/** The texts of the marked tokens of a conversation with one turn of tools, from `start` on. */
function marked(
  pieces: readonly string[],
  messages: ChatMessage[],
  start: number,
  failures: null[] | "unknown" = [null],
) {
  const { tokenIds, detokenize } = write(pieces);
  const timeline = timelineOf(turn(start, pieces.length, failures === "unknown" ? {} : { failures }));
  const marks = markObservations({ tokenIds, messages, timeline }, detokenize);
  return pieces.filter((_, t) => marks[t]);
}

describe("markObservations", () => {
  it("marks an answer's text, without the template around it and without tokens of both", () => {
    const pieces = ["go", "<tool>", "id4\n", "4", "2", "\n", "</tool>", "4 model"];
    expect(marked(pieces, [said, tool("42")], 1)).toEqual(["4", "2"]);
    expect(marked(["go", "<tool>", "4", "2\n", "</tool>"], [said, tool("42")], 1)).toEqual(["4"]);
  });

  it("marks each of several answers, the turn's own and not those of the prompt", () => {
    const pieces = ["<a>", "one", "</a>", "ask", "<a>", "two", "</a><a>", "one", " more", "</a>"];
    const messages = [said, tool("one"), said, tool("two"), tool("one more")];
    expect(marked(pieces, messages, 4, [null, null])).toEqual(["two", "one", " more"]);
    // An agent's turn does not tell how many answers it has.
    expect(marked(pieces, messages, 4, "unknown")).toEqual(["two", "one", " more"]);
  });

  it("finds texts that the template trims or writes as JSON, and text beside images", () => {
    expect(marked(["<", "a", ">"], [tool(" a\n")], 0)).toEqual(["a"]);
    expect(marked(['{"out":"', "say ", '\\"x\\"', '"}'], [tool('say "x"')], 0)).toEqual(["say ", '\\"x\\"']);
    const shown = tool([
      { type: "text", text: "left" },
      { type: "image", image: "x.png" },
      { type: "text", text: "right" },
    ] as ChatMessage["content"]);
    expect(marked(["<", "left", "[image]", "right", ">"], [shown], 0)).toEqual(["left", "right"]);
  });

  it("leaves out text that the template hides, and goes on with the answers before", () => {
    const messages = [tool("shown"), tool("hidden")];
    expect(marked(["<", "shown", ">", "<", "elided", ">"], messages, 0, [null, null])).toEqual(["shown"]);
  });

  it("reads the turns of each segment, and marks nothing without messages, turns or text", () => {
    const { tokenIds, detokenize } = write(["go", "<", "x", ">", "<", "y", ">", "<", "x", ">"]);
    const segment = (start: number, end: number, parent: number, ...messages: ChatMessage[]) => ({
      ...{ start, end, parent, messages },
    });
    const segments = [
      segment(0, 1, -1, said),
      segment(1, 7, 0, tool("x"), said, tool("y")),
      segment(7, 10, 0, tool("x")),
    ];
    const timeline = timelineOf(turn(1, 4), turn(4, 7), turn(7, 10), turn(10, 10));
    const marks = markObservations({ tokenIds, segments, timeline }, detokenize);
    expect([...marks]).toEqual([0, 0, 1, 0, 0, 1, 0, 0, 1, 0]);
    const unmarked = [{ timeline }, { messages: [tool("x")] }, { timeline, messages: [tool("  ")] }];
    for (const given of unmarked) expect([...markObservations({ tokenIds, ...given }, detokenize)]).not.toContain(1);
    const user = { messages: [tool("x")], timeline: timelineOf(turn(1, 4, { role: "user" })) };
    expect([...markObservations({ tokenIds, ...user }, detokenize)]).not.toContain(1);
  });
});

describe("with the template of each family", () => {
  const schemas: ToolSchema[] = [defineToolSchema("look", "Looks.", { type: "object", properties: {} })];
  const call = (id: number) => ({
    id: `call0000${id}`,
    type: "function" as const,
    function: { name: "look", arguments: {} },
  });
  const question: ChatMessage = { role: "user", content: "When?" };
  let vocabulary: BundledVocabulary;
  beforeAll(async () => {
    vocabulary = await BundledVocabulary.load("qwen2");
  });
  afterAll(() => vocabulary.dispose());

  it.each(Object.entries(toolTemplateCases))(
    "%s: marks the answers of tools",
    (name, { ends, added, takesSeveral }) => {
      const tokens = new AddedTokens(vocabulary, [...ends, ...added]);
      const template = new ChatTemplate(readToolTemplate(name), { bos_token: "<bos>", eos_token: ends[0]! });
      const endOfTurnTokens = ends.map((text) => tokens.tokenize(text)[0]!);
      const tokenizer = new DeltaTokenizer(template, tokens, { endOfTurnTokens, bosToken: null });
      const texts = takesSeveral === false ? ["cold rain all day"] : ["cold rain all day", '{"sky": ["grey", 7.5]}'];
      const asked = [question, { ...said, tool_calls: texts.map((_, i) => call(i)) }];
      const answers = texts.map((content, i) => ({ ...tool(content), name: "look", tool_call_id: `call0000${i}` }));
      const before = tokenizer.render(asked, schemas);
      const whole = tokenizer.render([...asked, ...answers], schemas, true);
      let shared = 0;
      while (shared < before.length && before[shared] === whole[shared]) shared++;
      const [prompt, turnTokens] = [tokens.tokenize(whole.slice(0, shared)), tokens.tokenize(whole.slice(shared))];
      const tokenIds = Int32Array.of(...prompt, ...turnTokens);
      const timeline = timelineOf(turn(prompt.length, tokenIds.length, { failures: texts.map(() => null) }));
      const marks = markObservations({ tokenIds, messages: [...asked, ...answers], timeline }, (ids) =>
        tokens.detokenize(ids),
      );
      const found: string[] = [];
      for (let t = 0; t < tokenIds.length; t++) {
        if (!marks[t]) continue;
        const text = tokens.detokenize([tokenIds[t]!]);
        if (t > 0 && marks[t - 1]) found[found.length - 1] += text;
        else found.push(text);
      }
      // The ends of an answer may share a token with the template.
      const forms = texts.map((text) => [text, JSON.stringify(text).slice(1, -1)]);
      expect(found, whole.slice(shared)).toHaveLength(texts.length);
      found.forEach((text, i) => {
        const form = forms[i]!.find((form) => form.includes(text));
        expect(form, `${text} in ${whole.slice(shared)}`).toBeDefined();
        const before = form!.indexOf(text);
        expect(Math.max(before, form!.length - before - text.length), text).toBeLessThanOrEqual(4);
      });
    },
  );
});
