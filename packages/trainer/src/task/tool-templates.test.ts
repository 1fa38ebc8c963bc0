import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ChatMessage, ToolSchema } from "@cria/core";
import { ChatTemplate, DeltaTokenizer } from "@cria/tokenizer-delta";
import { AddedTokens, BundledVocabulary } from "@cria/tokenizer-delta/testing";
import { defineToolSchema, getToolFormat, type TurnReader } from "@cria/tools";
import { listToolFormats } from "@cria/tools/internal";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { probeModel } from "./find-tool-format.js";

const folder = join(import.meta.dirname, "..", "..", "..", "tokenizer-delta", "fixtures", "tool-templates");

/** Tokens and turn ends of a template's model. */
interface Case {
  format: string;
  /** Another framework's or family's name for that. */
  alias?: string;
  ends: readonly string[];
  /** Special tokens, beside the ends. */
  added: readonly string[];
  /** The tags of its thoughts, where it has them. */
  thinks?: readonly [open: string, close: string];
  /** A text that its calls cannot contain. */
  without?: string;
  /** True if the template prints calls. */
  printsCalls?: false;
}

const think = ["<think>", "</think>"] as const;
const cases: Record<string, Case> = {
  "deepseek-v3.1": {
    format: "deepseek_v3",
    ends: ["<｜end▁of▁sentence｜>"],
    added: [
      "<｜User｜>",
      "<｜Assistant｜>",
      "<｜tool▁calls▁begin｜>",
      "<｜tool▁call▁begin｜>",
      "<｜tool▁sep｜>",
      ...think,
    ],
    thinks: think,
  },
  "deepseek-v3.2": {
    format: "deepseek_v32",
    alias: "deepseek_v4",
    ends: ["<｜end▁of▁sentence｜>"],
    added: ["<｜User｜>", "<｜Assistant｜>", "｜DSML｜", "<｜tool▁calls▁begin｜>", ...think],
    thinks: think,
    without: "</｜DSML｜parameter>",
  },
  functiongemma: {
    format: "functiongemma",
    ends: ["<end_of_turn>", "<start_function_response>"],
    added: ["<start_of_turn>", "<start_function_call>", "<end_function_call>", "<end_function_response>", "<escape>"],
    without: "<escape>",
  },
  gemma4: {
    format: "gemma4",
    ends: ["<turn|>", "<|tool_response>"],
    added: ["<|turn>", "<|tool_call>", "<tool_call|>", "<tool_response|>", "<|channel>", "<channel|>", '<|"|>'],
    thinks: ["<|channel>thought", "<channel|>"],
    without: '<|"|>',
  },
  "gemma3-pythonic": { format: "pythonic", ends: ["<end_of_turn>"], added: ["<start_of_turn>"] },
  "glm-4.5": {
    format: "glm45",
    alias: "glm46",
    ends: ["<|user|>", "<|observation|>"],
    added: ["<|assistant|>", "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"],
    thinks: think,
    without: "</arg_value>",
  },
  "glm-4.7": {
    format: "glm45",
    alias: "glm47",
    ends: ["<|user|>", "<|observation|>"],
    added: ["<|assistant|>", "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"],
    thinks: think,
    without: "</arg_value>",
  },
  "granite-3": { format: "granite", ends: ["<|end_of_text|>"], added: ["<|start_of_role|>", "<|tool_call|>"] },
  "granite-3-no-calls": {
    format: "granite",
    ends: ["<|end_of_text|>"],
    added: ["<|start_of_role|>", "<|end_of_role|>", "<|tool_call|>"],
    printsCalls: false,
  },
  "granite-4": {
    format: "hermes",
    alias: "granite4",
    ends: ["<|end_of_text|>"],
    added: ["<|start_of_role|>", "<tool_call>", "</tool_call>"],
  },
  "kimi-k2": {
    format: "kimi_k2",
    ends: ["<|im_end|>"],
    added: ["<|tool_calls_section_begin|>", "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"],
    thinks: think,
  },
  lfm2: {
    format: "pythonic",
    alias: "lfm2",
    ends: ["<|im_end|>"],
    added: ["<|im_start|>", "<|tool_call_start|>", "<|tool_call_end|>", ...think],
    thinks: think,
  },
  "lfm2-no-calls": {
    format: "pythonic",
    ends: ["<|im_end|>"],
    added: ["<|im_start|>", "<|tool_call_start|>", "<|tool_call_end|>"],
    printsCalls: false,
  },
  "minimax-m2": {
    format: "minimax_m2",
    ends: ["[e~["],
    added: ["]~b]", "<minimax:tool_call>", "</minimax:tool_call>", ...think],
    thinks: think,
    without: "</parameter>",
  },
  "ministral-3": {
    format: "mistral",
    ends: ["</s>"],
    added: ["[INST]", "[/INST]", "[TOOL_CALLS]", "[ARGS]", "[THINK]", "[/THINK]"],
    thinks: ["[THINK]", "[/THINK]"],
  },
  "phi-4-mini": {
    format: "granite",
    alias: "phi4_mini",
    ends: ["<|end|>"],
    added: ["<|user|>", "<|assistant|>", "<|tool_call|>", "<|/tool_call|>", "<|tool_response|>"],
  },
  "seed-oss": {
    format: "qwen3_coder",
    alias: "seed_oss",
    ends: ["<seed:eos>"],
    added: ["<seed:bos>", "<seed:tool_call>", "</seed:tool_call>", "<seed:think>", "</seed:think>"],
    thinks: ["<seed:think>", "</seed:think>"],
    without: "</parameter>",
  },
  smollm3: {
    format: "hermes",
    alias: "smollm3",
    ends: ["<|im_end|>"],
    added: ["<|im_start|>", "<tool_call>", "</tool_call>", ...think],
    thinks: think,
  },
};
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
];

type Arguments = Record<string, unknown>;
const plain: Arguments = { note: "quiet", guests: 3, share: -0.25, isOpen: true };
const nested: Arguments = {
  note: "",
  isOpen: false,
  tags: ["a", "b c"],
  place: { city: "Lima", floors: [1, "2", { wing: "east" }] },
};

function listArguments({ without }: Case): Arguments[] {
  const texts = hard.map((text) => (without === undefined ? text : text.replaceAll(without, "")));
  const fitting = texts.map((note) => ({ note, place: { city: note.replaceAll("\n", " ") }, tags: [note] }));
  return [plain, nested, ...fitting];
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
    const template = new ChatTemplate(readFileSync(join(folder, `${name}.jinja`), "utf8"), {
      bos_token: "<bos>",
      eos_token: ends[0]!,
    });
    const endOfTurnTokens = ends.map((text) => tokens.tokenize(text)[0]!);
    tokenizers.set(name, new DeltaTokenizer(template, tokens, { endOfTurnTokens, bosToken: null }));
  }
});
afterAll(() => vocabulary.dispose());

/** The tokens that the model would have sampled for a turn, as text, without the end of the turn. */
function sampleTurn(name: string, message: ChatMessage): string {
  const tokenizer = tokenizers.get(name)!;
  const { tokenIds, ended } = tokenizer.encodeAssistant(message);
  const ids = ended ? tokenIds.slice(0, -1) : tokenIds;
  return tokenizer.tokenizer.detokenize(ids);
}

const read = (name: string, text: string) => getToolFormat(cases[name]!.format).parse(text, schemas);

function split(reader: TurnReader, pieces: readonly string[]) {
  const spoken = { reasoning: "", text: "" };
  const splitter = reader.split((kind, text) => {
    spoken[kind] += text;
  });
  for (const piece of pieces) splitter.push(piece);
  return { ...spoken, end: splitter.finish() };
}

it("has a case for every template", () => {
  expect(
    readdirSync(folder)
      .filter((file) => file.endsWith(".jinja"))
      .sort(),
  ).toEqual(names.map((name) => `${name}.jinja`).sort());
});

it.each(names)("%s: its format is found, and no neighbour's", (name) => {
  const { format, alias, printsCalls } = cases[name]!;
  expect(probeModel(tokenizers.get(name)!)).toEqual({ format, listsTools: true, showsAnswers: true });
  if (alias) expect(getToolFormat(alias).name).toBe(format);
  if (printsCalls === false) return;
  const turn = sampleTurn(name, makeTurn([plain]));
  const readers = listToolFormats().filter(({ parse, detectionRank }) => {
    const { calls } = parse(turn, schemas);
    return detectionRank === 0 && calls.some((call) => call.error === undefined);
  });
  // Text without marks on a line of its own may be code of other formats; text with marks must not be.
  expect(readers.map((one) => one.name).filter((one) => one !== format)).toEqual([]);
});

describe.each(printing)("%s", (name) => {
  it("reads back arguments of every type, one call and several", () => {
    const list = listArguments(cases[name]!);
    for (const calls of [...list.map((given) => [given]), list]) {
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
    const turn = sampleTurn(name, makeTurn([plain, plain], { content: "I look." }));
    const thought = thinks ? `${thinks[0]}\nSo.\n${thinks[1]}\n` : "";
    const reader = getToolFormat(format);
    const { calls, content } = reader.parse(thought + turn, schemas);
    expect(calls.map((call) => call.arguments)).toEqual([plain, plain]);
    expect(content).toContain("I look.");
    const { end, text, reasoning } = split(reader, [thought + turn]);
    expect(text).toContain("I look.");
    expect(reasoning.trim()).toBe(thinks ? "So." : "");
    expect(reader.parse((thought + turn).slice(end), schemas).calls).toEqual(calls);
  });

  it("takes a call that is only thought of for thinking", () => {
    const { thinks, format } = cases[name]!;
    if (!thinks) return;
    const reader = getToolFormat(format);
    const turn = sampleTurn(name, makeTurn([plain]));
    // Without the thoughts that some templates print, empty as they are.
    const call = turn.slice(split(reader, [turn]).end);
    expect(reader.parse(call, schemas).calls).toHaveLength(1);
    for (const text of [`${thinks[0]}\n${call}`, `${thinks[0]}\n${call}\n${thinks[1]}Done.`]) {
      expect(reader.parse(text, schemas)).toEqual({ content: text, calls: [] });
      expect(split(reader, [text]).text).toBe(text.endsWith("Done.") ? "Done." : "");
    }
  });

  it("is split the same wherever its text is cut", () => {
    const reader = getToolFormat(cases[name]!.format);
    const turn = sampleTurn(name, makeTurn([plain, nested], { content: "I look: a < b." }));
    const whole = split(reader, [turn]);
    for (let at = 0; at <= turn.length; at++)
      expect(split(reader, [turn.slice(0, at), turn.slice(at)]), `cut at ${at}`).toEqual(whole);
    expect(split(reader, [...turn])).toEqual(whole);
    expect(reader.parse(turn.slice(whole.end), schemas).calls.map((call) => call.arguments)).toEqual([plain, nested]);
  });

  it("makes errors of calls that break off, and keeps what was written", () => {
    const turn = sampleTurn(name, makeTurn([plain, nested]));
    let errors = 0;
    for (let at = 0; at < turn.length; at++) {
      const { calls } = read(name, turn.slice(0, at));
      for (const [i, call] of calls.entries()) {
        if (call.error === undefined) expect(call.arguments, turn.slice(0, at)).toEqual([plain, nested][i]);
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

it("a format is told by a token of the model only where no other's calls begin so", () => {
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
  // Hermes and Qwen3-Coder begin so.
  expect(make(["<tool_call>"], listing)).toBeNull();
  expect(make([], listing)).toBeNull();
});
