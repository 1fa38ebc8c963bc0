import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ChatMessage, ToolSchema } from "@cria/core";
import { readGguf, writeGguf } from "@cria/engine";
import { describeTinyModel, TinyModels } from "@cria/engine/testing";
import { findTurnForm, structureTurn } from "@cria/episodes";
import { findOpening } from "@cria/episodes/internal";
import { ChatTemplate, DeltaTokenizer } from "@cria/tokenizer-delta";
import { AddedTokens, BundledVocabulary } from "@cria/tokenizer-delta/testing";
import { defineToolSchema, getToolFormat, type TurnReader, toolCallGrammar } from "@cria/tools";
import { listToolFormats } from "@cria/tools/internal";
import { matchesGrammar } from "@cria/tools/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  readToolTemplate,
  shortTemplates,
  type ToolTemplateCase,
  toolTemplateCases,
} from "../testing/tool-template-cases.js";
import { cutTurn, probeHeader, probeModel } from "./find-tool-format.js";

const cases = toolTemplateCases;
const names = Object.keys(cases);
const printing = names.filter((name) => cases[name]!.printsCalls !== false);

const schemas: ToolSchema[] = [
  defineToolSchema("book_room", "Books a room.", {
    type: "object",
    properties: {
      note: { type: "string" },
      guests: { type: "integer" },
      share: { type: "number" },
      isOpen: { type: "boolean" },
      until: { type: ["string", "null"] },
      tags: { type: "array", items: { type: "string" } },
      place: { type: "object", properties: { city: { type: "string" }, floors: { type: "array" } } },
    },
  }),
  defineToolSchema("get-time", "The time.", { type: "object", properties: {} }),
];

/** Texts that are hard to quote, with marks of every format. */
const hard = [
  'She said "no", it\'s\n\n\tC:\\new; {a: [1]}, f(x=")")',
  "Größe 🦙 <b>&amp;</b> true 12",
  "<tool_call></tool_call><|tool_call|><|tool_call_end|>]</function></invoke>",
  "<|tool_call_start|>[f(a=1)]<end_function_call><tool_call|><|tool_calls_section_end|>",
  "[TOOL_CALLS]</arg_value></parameter><｜tool▁call▁end｜></｜DSML｜invoke>",
  '<escape><|"|></｜DSML｜parameter></seed:tool_call></minimax:tool_call>',
  "<mm:think>]<]minimax[>[</invoke>]<]minimax[>[</tool_call>]<]minimax[>[<item>",
  '<|close|>argument<|sep|><|close|>call<|sep|><|open|>argument key="a" type="null"<|sep|>',
];

type Arguments = Record<string, unknown>;
const plain: Arguments = { note: "quiet", guests: 3, share: -0.25, isOpen: true };
const nested: Arguments = {
  note: "",
  isOpen: false,
  until: null,
  tags: ["a", "b c"],
  place: { city: "Lima", floors: [1, "2", { wing: "east" }] },
};

/** The same, as far as the template says what it is. */
const nestedFor = ({ statesTypes }: ToolTemplateCase): Arguments => {
  const { until: _, ...rest } = nested;
  return statesTypes === false ? { ...rest, place: { city: "Lima", floors: ["2"] } } : nested;
};

function listArguments({ without, ...one }: ToolTemplateCase): Arguments[] {
  const texts = hard.map((text) => (without === undefined ? text : text.replaceAll(without, "")));
  const fitting = texts.map((note) => ({ note, place: { city: note.replaceAll("\n", " ") }, tags: [note] }));
  return [plain, nestedFor(one), ...fitting];
}

function makeTurn(list: readonly Arguments[], more: Partial<ChatMessage> = {}): ChatMessage {
  const tool_calls = list.map((given, i) => ({
    id: `call0000${i}`,
    type: "function" as const,
    function: { name: "book_room", arguments: given },
  }));
  return { role: "assistant", content: "", ...more, tool_calls };
}

let vocabulary: BundledVocabulary;
const tokenizers = new Map<string, DeltaTokenizer>();
beforeAll(async () => {
  vocabulary = await BundledVocabulary.load("qwen2");
  for (const [name, { ends, added }] of Object.entries(cases)) {
    const tokens = new AddedTokens(vocabulary, [...ends, ...added]);
    const template = new ChatTemplate(readToolTemplate(name), {
      bos_token: "<bos>",
      eos_token: ends[0]!,
    });
    const endOfTurnTokens = ends.map((text) => tokens.tokenize(text)[0]!);
    tokenizers.set(name, new DeltaTokenizer(template, tokens, { endOfTurnTokens, bosToken: null }));
  }
});
afterAll(() => vocabulary.dispose());

const question: ChatMessage = { role: "user", content: "When?" };

/**
 * The text that the model would have sampled: the template's rendering of a turn, without its end, tokenized and
 * detokenized.
 */
function sampleTurn(name: string, message: ChatMessage): string {
  const tokenizer = tokenizers.get(name)!;
  const text = cutTurn(
    tokenizer.render([question, message], schemas),
    tokenizer.render([question], schemas, true),
    tokenizer.listEndTexts(),
  );
  return tokenizer.tokenizer.detokenize(tokenizer.tokenizer.tokenize(text));
}

const takesSeveral = (name: string) => cases[name]!.takesSeveral !== false;

/** Returns the text if the template prints a text before calls, else "". */
const sayBefore = (name: string, text: string) => (cases[name]!.printsBoth === false ? "" : text);

const read = (name: string, text: string) => getToolFormat(cases[name]!.format).parse(text, schemas);

function split(reader: TurnReader, pieces: readonly string[]) {
  const spoken = { reasoning: "", text: "" };
  const splitter = reader.split((kind, text) => {
    spoken[kind] += text;
  });
  for (const piece of pieces) splitter.push(piece);
  return { ...spoken, end: splitter.finish() };
}

/** Whether a turn without calls is shown before it has ended. */
function showsAtOnce(name: string): boolean {
  let shown = "";
  const splitter = getToolFormat(cases[name]!.format).split((_, text) => {
    shown += text;
  });
  splitter.push(sampleTurn(name, { role: "assistant", content: "I look at it now." }));
  return shown.includes("I look");
}

it("has a case for every template", () => {
  const folder = join(import.meta.dirname, "..", "..", "..", "tokenizer-delta", "fixtures", "tool-templates");
  expect(
    readdirSync(folder)
      .filter((file) => file.endsWith(".jinja"))
      .sort(),
  ).toEqual(shortTemplates.map((name) => `${name}.jinja`).sort());
});

it("the table of families lists the tested ones", () => {
  const page = readFileSync(join(import.meta.dirname, "..", "..", "..", "..", "docs", "tool-families.md"), "utf8");
  const [, table] = /^(?:\|.*\n){2}((?:\|.*\n)+)/m.exec(page)!;
  const rows = table!
    .trim()
    .split("\n")
    .map((line) => line.slice(1, -1).split(/(?<!\\)\|/))
    .map((cells) => cells.map((cell) => cell.trim().replaceAll("`", "").replaceAll("\\|", "|")));
  const says = (is: boolean) => (is ? "yes" : "no");
  for (const [family, format, ends, grammar, streamed, calls, tested] of rows) {
    const known = getToolFormat(format!);
    expect(grammar, family).toBe(says(known.grammar !== null));
    for (const name of tested!.split(", ")) {
      expect(streamed, `${family}: ${name}`).toBe(says(showsAtOnce(name)));
      expect(calls, `${family}: ${name}`).toBe(takesSeveral(name) ? "several" : "one");
      expect(cases[name]?.format, `${family}: ${name}`).toBe(format);
      expect(cases[name]!.ends.slice().sort(), `${family}: ${name}`).toEqual(expect.arrayContaining(ends!.split(", ")));
    }
  }
  expect(rows.flatMap(([, , , , , , tested]) => tested!.split(", ")).sort()).toEqual([...names].sort());
});

it.each(names)("%s: its format is found, and no neighbour's", (name) => {
  const { format, alias, printsCalls, listsTools = true } = cases[name]!;
  expect(probeModel(tokenizers.get(name)!)).toEqual({ format, listsTools, showsAnswers: true });
  if (alias) expect(getToolFormat(alias).name).toBe(format);
  if (printsCalls === false) return;
  const turn = sampleTurn(name, makeTurn([plain]));
  const readers = listToolFormats().filter(({ parse, detectionRank }) => {
    const { calls } = parse(turn, schemas);
    return detectionRank === 0 && calls.some((call) => call.error === undefined);
  });
  // A line of text without marks may be code of other formats; text with marks must not be.
  expect(readers.map((one) => one.name).filter((one) => one !== format)).toEqual([]);
});

it("formats are found in files' headers", async () => {
  const models = new TinyModels();
  for (const name of names) {
    const { format, ends, added } = cases[name]!;
    const controlTokens = [...ends, ...added].filter((text) => !text.startsWith("<|im_"));
    const file = describeTinyModel({ controlTokens, chatTemplate: readToolTemplate(name), layers: 1 });
    const eos = (file.metadata["tokenizer.ggml.tokens"]!.value as string[]).indexOf(ends[0]!);
    file.metadata["tokenizer.ggml.eos_token_id"] = { type: "uint32", value: eos };
    const path = join(models.folder, "template.gguf");
    await writeGguf(path, { ...file, tensors: [] });
    expect(probeHeader(await readGguf(path), {})?.format, name).toBe(format);
  }
  await models.cleanUp();
});

describe.each(printing)("%s", (name) => {
  it("reads back arguments of every type, one call and several", () => {
    const list = listArguments(cases[name]!);
    for (const calls of [...list.map((given) => [given]), ...(takesSeveral(name) ? [list] : [])]) {
      const turn = sampleTurn(name, makeTurn(calls));
      const found = read(name, turn);
      expect(
        found.calls.map((call) => call.error ?? call.arguments),
        turn,
      ).toEqual(calls);
      expect(found.calls.every((call) => call.name === "book_room")).toBe(true);
    }
  });

  it("reads a call without arguments, and text and thoughts before calls", () => {
    const { thinks, format } = cases[name]!;
    const bare = makeTurn([{}]);
    bare.tool_calls![0]!.function.name = "get-time";
    expect(read(name, sampleTurn(name, bare)).calls).toMatchObject([{ name: "get-time", arguments: {} }]);
    const said = sayBefore(name, "I look.");
    const given = takesSeveral(name) ? [plain, plain] : [plain];
    const turn = sampleTurn(name, makeTurn(given, { content: said }));
    const thought = thinks ? `${thinks[0]}\nSo.\n${thinks[1]}\n` : "";
    const reader = getToolFormat(format);
    const { calls, content } = reader.parse(thought + turn, schemas);
    expect(calls.map((call) => call.arguments)).toEqual(given);
    expect(content).toContain(said);
    const { end, text, reasoning } = split(reader, [thought + turn]);
    expect(text).toContain(said);
    expect(reasoning.trim()).toBe(thinks ? "So." : "");
    expect(reader.parse((thought + turn).slice(end), schemas).calls).toEqual(calls);
  });

  it("takes a call that is only thought of for thinking", () => {
    const { thinks, format, opensText = "" } = cases[name]!;
    if (!thinks) return;
    const reader = getToolFormat(format);
    const turn = sampleTurn(name, makeTurn([plain]));
    // Without the empty thoughts that some templates print.
    const call = turn.slice(split(reader, [turn]).end);
    expect(reader.parse(call, schemas).calls).toHaveLength(1);
    for (const text of [`${thinks[0]}\n${call}`, `${thinks[0]}\n${call}\n${thinks[1]}${opensText}Done.`]) {
      expect(reader.parse(text, schemas)).toMatchObject({ content: text, calls: [] });
      expect(split(reader, [text]).text.trim()).toBe(text.endsWith("Done.") ? "Done." : "");
    }
  });

  it("has a grammar that takes its calls, and no other tool's or type's", () => {
    if (cases[name]!.printsGrammar === false) return;
    const format = getToolFormat(cases[name]!.format);
    const allows = (given: Arguments, called = "book_room", arguments_ = schemas) => {
      const turn = sampleTurn(name, makeTurn([given]));
      const grammar = toolCallGrammar(format, arguments_, { name: called })!;
      return matchesGrammar(grammar, turn.slice(split(format, [turn]).end).trim());
    };
    for (const given of [{}, plain, nestedFor(cases[name]!), { note: "é 🦙\n'x' \"y\" \\" }])
      expect(allows(given), JSON.stringify(given)).toBe(true);
    expect(allows(plain, "get-time")).toBe(false);
    for (const given of [{ guests: "three" }, { guests: 1.5 }, { isOpen: "yes" }, { place: 3 }, { unknown: 1 }])
      expect(allows(given), JSON.stringify(given)).toBe(false);
  });

  it("is split the same wherever its text is cut", () => {
    const reader = getToolFormat(cases[name]!.format);
    const hardest = nestedFor(cases[name]!);
    const given = takesSeveral(name) ? [plain, hardest] : [hardest];
    const turn = sampleTurn(name, makeTurn(given, { content: sayBefore(name, "I look: a < b.") }));
    const whole = split(reader, [turn]);
    for (let at = 0; at <= turn.length; at++)
      expect(split(reader, [turn.slice(0, at), turn.slice(at)]), `cut at ${at}`).toEqual(whole);
    expect(split(reader, [...turn])).toEqual(whole);
    expect(reader.parse(turn.slice(whole.end), schemas).calls.map((call) => call.arguments)).toEqual(given);
  });

  it("makes errors of calls that break off, and keeps their text", () => {
    const hardest = nestedFor(cases[name]!);
    const given = takesSeveral(name) ? [plain, hardest] : [hardest];
    const turn = sampleTurn(name, makeTurn(given));
    let errors = 0;
    for (let at = 0; at < turn.length; at++) {
      const { calls } = read(name, turn.slice(0, at));
      for (const [i, call] of calls.entries()) {
        const right = cases[name]!.takesNothing ? [given[i], {}] : [given[i]];
        if (call.error === undefined) expect(right, turn.slice(0, at)).toContainEqual(call.arguments);
        else {
          errors++;
          expect(call.text).toMatch(/\S/);
          expect(turn).toContain(call.text);
        }
      }
    }
    expect(errors).toBeGreaterThan(0);
  });
});

it("thoughts that the generation prompt has opened are thoughts, also where every turn's rendering opens them", () => {
  for (const [name, open] of [
    ["Kimi-K3", "<|open|>think<|sep|>"],
    ["Qwen3.5-4B", "<think>\n"],
    ["GLM-4.7-Flash", "<think>"],
    ["Qwen-Qwen3-0.6B", ""],
  ] as const)
    for (const after of ["user", "tool"] as const)
      expect(findOpening(tokenizers.get(name)!, after), `${name}, ${after}`).toBe(open);
});

it("Kimi-K3: a turn that the template prints anew is as sampled, marks included", () => {
  const tokenizer = tokenizers.get("Kimi-K3")!;
  const form = (name: string) => findTurnForm(tokenizers.get(name)!, { schemas, production: true });
  expect([form("Kimi-K3"), form("Qwen-Qwen3-0.6B")]).toEqual(["structured", "text"]);
  const sampled = sampleTurn("Kimi-K3", makeTurn([plain], { content: "I look.", reasoning_content: "So." }));
  const turn = findOpening(tokenizer, "user") + sampled;
  const again = structureTurn(read("Kimi-K3", turn), turn);
  expect(again).toMatchObject({ content: "I look.", reasoning_content: "So." });
  expect(sampleTurn("Kimi-K3", again)).toBe(sampled);
});

it("MiniMax-M3: its template leaves out null, and prints numbers as it does texts", () => {
  const turn = sampleTurn("MiniMax-M3", makeTurn([nested]));
  const { until: _, ...rest } = nested;
  const floors = ["1", "2", { wing: "east" }];
  expect(read("MiniMax-M3", turn).calls).toEqual([
    { name: "book_room", arguments: { ...rest, place: { city: "Lima", floors } } },
  ]);
});

it("a format is found by a token of the model only if no other format's calls begin with it", () => {
  const make = (added: readonly string[], source: string) => {
    const tokens = new AddedTokens(vocabulary, ["<|im_end|>", ...added]);
    return probeModel(
      new DeltaTokenizer(new ChatTemplate(source), tokens, {
        endOfTurnTokens: [tokens.tokenize("<|im_end|>")[0]!],
        bosToken: null,
      }),
    ).format;
  };
  const listing = "{{ tools | tojson if tools else '' }}{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}";
  const silent = "{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}";
  expect(make(["[TOOL_CALLS]"], listing)).toBe("mistral");
  expect(make(["[TOOL_CALLS]"], silent)).toBeNull();
  // Calls of Hermes and Qwen3-Coder begin like this.
  expect(make(["<tool_call>"], listing)).toBeNull();
  expect(make([], listing)).toBeNull();
});
