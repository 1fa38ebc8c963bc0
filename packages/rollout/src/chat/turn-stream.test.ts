import { makeUniform } from "@cria/core";
import { amount } from "@cria/core/testing";
import {
  defineToolSchema,
  getToolFormat,
  type ToolFormat,
  type TurnReader,
  toolCallGrammar,
  toolFormats,
} from "@cria/tools";
import { noCalls, resolveToolFormat } from "@cria/tools/internal";
import { sampleGrammar } from "@cria/tools/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ChatEvent } from "./chat-model.js";
import { readAnswer } from "./read-answer.js";
import { TurnStream } from "./turn-stream.js";

fc.configureGlobal({ seed: Number(process.env.CRIA_SEED ?? 1) });

const schema = defineToolSchema("name", "", {
  type: "object",
  properties: { x: { type: "object" }, code: { type: "string" } },
});
const read = (reader: TurnReader, text: string) =>
  readAnswer(text, reader, [schema], (index) => `call_${index}`).message;

/** Events of a turn whose text comes in these pieces. */
function stream(reader: TurnReader, pieces: readonly string[]): { told: ChatEvent[]; all: ChatEvent[] } {
  const all: ChatEvent[] = [];
  const turn = new TurnStream(reader, (event) => all.push(event));
  for (const piece of pieces) turn.push(piece);
  const told = [...all];
  turn.end(read(reader, pieces.join("")));
  return { told, all };
}

const join = (events: readonly ChatEvent[], type: "text" | "reasoning") =>
  events.flatMap((event) => (event.type === type ? [event.text] : [])).join("");

function cut(text: string, at: readonly number[]): string[] {
  const places = [...new Set([0, ...at.map((place) => place % (text.length + 1)), text.length])].sort((a, b) => a - b);
  return places.slice(1).map((end, i) => text.slice(places[i], end));
}

/** DeepSeek's marks, by their words. */
const mark = (words: string) => `<｜tool▁${words.replaceAll(" ", "▁")}｜>`;
/** Calls as models write them. */
const written: Record<string, string> = {
  "chatml-json": '```json\n{"name": "name", "arguments": {"x": {}}}\n```',
  deepseek_v3: `${mark("calls begin")}${mark("call begin")}name${mark("sep")}{"x": {}}${mark("call end")}${mark("calls end")}`,
  gpt_oss: '<|start|>assistant<|channel|>commentary to=functions.name<|message|>{"x": {}}<|call|>',
  hermes: '<tool_call>\n{"name": "name", "arguments": {"x": {}}}\n</tool_call>',
  llama3_json: '<|python_tag|>{"name": "name", "parameters": {"x": {}}}',
  mistral: '[TOOL_CALLS]name[ARGS]{"x": {}}',
  python: "\n```python\nprint(1)\n```\n",
  pythonic: "<|tool_call_start|>[name(x={})]<|tool_call_end|>",
  qwen3_coder: "<tool_call>\n<function=name>\n<parameter=x>\n{}\n</parameter>\n</function>\n</tool_call>",
};
const formats = toolFormats.names();
/** A call in each format: one that is not listed above writes what its grammar lets it. */
const calls = Object.fromEntries(formats.map((format) => [format, written[format] ?? sampleCall(format)]));

function sampleCall(format: string): string {
  const called = defineToolSchema("name", "", { type: "object", properties: { x: { const: {} } }, required: ["x"] });
  return sampleGrammar(toolCallGrammar(format, [called])!, makeUniform(1));
}

/** A user's: it is not built in, so no mark of its calls is known. */
const mine = resolveToolFormat((text) => ({
  content: text.replaceAll("CALL", ""),
  calls: text.includes("CALL") ? [{ name: "name", arguments: {} }] : [],
}));
const readers: [string, TurnReader & Partial<ToolFormat>][] = [
  ...formats.map((format): [string, TurnReader] => [format, getToolFormat(format)]),
  ["a user's", mine],
  ["none", noCalls],
  ...["gpt_oss", "kimi_k3", "minimax_m3"].map((format): [string, TurnReader] => [
    `${format} without calls`,
    getToolFormat(format).withoutCalls,
  ]),
];

it("finds a call of every format", () => {
  for (const format of formats) {
    const found = getToolFormat(format).parse(calls[format]!, [schema]).calls;
    const args = format === "python" ? { code: "print(1)" } : { x: {} };
    expect(
      found.map((call) => call.error ?? [call.name, call.arguments]),
      format,
    ).toEqual([["name", args]]);
  }
});

describe.each(readers)("%s", (_, reader) => {
  const pieces = [
    ..."{}[]\"':,;\\x1 \n<>`",
    "plain words ",
    "<think>",
    "</think>",
    "[THINK]",
    "[/THINK]",
    "<thi",
    "nk>",
    '{"name":"name","arguments":{',
    '{"answer": 5}',
    '{"name": "name", "arguments": [1]}',
    '"tool_calls":[',
    "```",
    "```json\n",
    "```python\n",
    "\n```\n",
    "<|python_tag|>",
    "<tool_call>",
    "</tool_call>",
    "<function=name>",
    "<function=",
    "<parameter=a[THINK]b>",
    "</parameter>",
    "</function>",
    "[TOOL_CALLS]",
    "[TOOL_CALLS]name[ARGS]{",
    "<|channel|>analysis<|message|>",
    "<|channel|>final<|message|>",
    "<|channel|>commentary to=functions.name<|message|>",
    "<|start|>assistant",
    "<|end|>",
    "<|call|>",
    mark("calls begin"),
    mark("calls end"),
    mark("call begin"),
    mark("sep"),
    mark("call end"),
    "<|tool_call_start|>[name(x=",
    "\n[name(x=",
    "<|tool_call_end|>",
    "<|tool_call>call:name{x:",
    "<tool_call|>",
    "<|channel>thought\n",
    "<channel|>",
    "<|open|>think<|sep|>",
    "<|close|>think<|sep|>",
    "<|open|>response<|sep|>",
    "<|close|>response<|sep|>",
    "<|close|>message<|sep|>",
    '<|open|>call tool="name" index="1"<|sep|>',
    "<|open|>tools<|sep|>",
    "<mm:think>",
    "</mm:think>",
    "]<]minimax[>[",
    ']<]minimax[>[<invoke name="name">',
    "<seed:tool_call>",
    '<invoke name="',
    '<parameter name="x">',
    "CALL",
    "\u2028",
    "☃😀",
    ...Object.values(calls),
  ];
  const text = fc.array(fc.oneof(fc.constantFrom(...pieces), fc.string()), { maxLength: 30 }).map((a) => a.join(""));
  const places = fc.array(fc.nat(10_000), { maxLength: 60 });

  it("streams the message, for any cuts of its text, and takes nothing back", () => {
    fc.assert(
      fc.property(text, places, (whole, at) => {
        const message = read(reader, whole);
        for (const cuts of [cut(whole, at), [whole], [...whole]]) {
          const { told, all } = stream(reader, cuts);
          expect(message.content.startsWith(join(told, "text"))).toBe(true);
          expect((message.reasoning_content ?? "").startsWith(join(told, "reasoning"))).toBe(true);
          expect(join(all, "text")).toBe(message.content);
          expect(join(all, "reasoning")).toBe(message.reasoning_content ?? "");
          expect(all.flatMap((event) => (event.type === "tool_call" ? [event.call] : []))).toEqual(
            message.tool_calls ?? [],
          );
          for (const event of all) if (event.type !== "tool_call") expect(event.text).not.toBe("");
        }
      }),
      { numRuns: amount(50, 150) },
    );
  });

  it("finds the calls that the parser finds in the whole text", () => {
    fc.assert(
      fc.property(text, (whole) => {
        const found = reader.parse(whole, [schema]).calls.filter((each) => each.error === undefined);
        const given = (read(reader, whole).tool_calls ?? []).map(({ function: { name, arguments: json } }) => ({
          name,
          json,
        }));
        for (const { name, arguments: values } of found)
          expect(given).toContainEqual({ name, json: JSON.stringify(values) });
        const right = given.filter(({ json }) => found.some((each) => JSON.stringify(each.arguments) === json));
        expect(right.length).toBe(found.length);
      }),
      { numRuns: amount(50, 150) },
    );
  });

  it("looks at each character a bounded number of times, however small the pieces", () => {
    const look = (head: string, unit: string, size: number) => {
      const whole = head + unit.repeat(Math.ceil(size / unit.length));
      const turn = new TurnStream(reader, () => {});
      return countLooks(reader, () => {
        for (let at = 0; at < whole.length; at += 3) turn.push(whole.slice(at, at + 3));
      });
    };
    // Beginnings that are reported only when the turn has ended.
    const heads = ['{"a": "', '[{"a": "', '```json\n{"a": "', "```js\n"];
    const units = [...pieces, '{"a": "', '{"a": [', "[ ", " ;", "\n ", '```json\n{"a": 1} ', "<function=a"];
    const starts = [...units.map((unit) => ["", unit]), ...heads.map((head) => [head, "x"])] as [string, string][];
    const steep = starts.flatMap(([head, unit]) => {
      const [small, large] = [look(head, unit, 1000), look(head, unit, 8000)];
      // Looking at all again for each piece would be a ratio of 64.
      return large > 12 * Math.max(small, 1000) ? [[head, unit, small, large]] : [];
    });
    expect(steep).toEqual([]);
  });
});

/** Characters that the search for calls, and strings' and expressions' own searches, go over while `work` runs. */
function countLooks({ callStart }: Partial<ToolFormat>, work: () => void): number {
  let looked = 0;
  const restore: (() => void)[] = [];
  if (callStart) {
    const { look } = callStart;
    restore.push(() => Object.assign(callStart, { look }));
    callStart.look = (text, at, isFirst) => {
      const verdict = look(text, at, isFirst);
      looked += typeof verdict === "number" ? verdict : text.length - at;
      return verdict;
    };
  }
  const watch = <Name extends "indexOf" | "search" | "trim" | "trimStart" | "trimEnd">(
    name: Name,
    measure: (text: string, result: never, from: number) => number,
  ) => {
    const original = String.prototype[name] as (...args: unknown[]) => never;
    restore.push(() => Object.assign(String.prototype, { [name]: original }));
    Object.assign(String.prototype, {
      [name](this: string, ...args: unknown[]) {
        const result = original.apply(this, args);
        looked += measure(String(this), result, typeof args[1] === "number" ? args[1] : 0);
        return result;
      },
    });
  };
  const find = (text: string, found: number, from: number) => (found < 0 ? text.length : found) - from;
  watch("indexOf", find);
  watch("search", find);
  for (const name of ["trim", "trimStart", "trimEnd"] as const)
    watch(name, (text, result: string) => text.length - result.length);
  const { exec } = RegExp.prototype;
  restore.push(() => Object.assign(RegExp.prototype, { exec }));
  Object.assign(RegExp.prototype, {
    exec(this: RegExp, text: string) {
      const from = this.global || this.sticky ? this.lastIndex : 0;
      const match = exec.call(this, text);
      looked += (match ? match.index + match[0].length : this.sticky ? from : text.length) - from;
      return match;
    },
  });
  try {
    work();
  } finally {
    for (const undo of restore) undo();
  }
  return looked;
}

describe("text that is streamed at once", () => {
  const tell = (format: string, ...pieces: string[]) => stream(getToolFormat(format), pieces).told;

  it.each(formats)("%s: has the text before a call, and nothing of the call", (format) => {
    const spoken = format === "gpt_oss" ? "<|channel|>final<|message|>I look.<|end|>" : "I look. ";
    const { told, all } = stream(getToolFormat(format), [...`${spoken}${calls[format]}`]);
    expect(join(told, "text")).toBe("I look.");
    expect(told.length).toBeGreaterThan(1);
    expect(told.every((event) => event.type === "text")).toBe(true);
    expect(all.at(-1)).toMatchObject({
      type: "tool_call",
      index: 0,
      call: {
        id: "call_0",
        type: "function",
        function: format === "python" ? { arguments: '{"code":"print(1)"}' } : { name: "name", arguments: '{"x":{}}' },
      },
    });
    expect(
      all
        .filter((event) => event.type === "text")
        .map((event) => event.text)
        .join(""),
    ).toBe("I look.");
  });

  it("has thoughts and text, without white space around them", () => {
    expect(tell("hermes", "<think>\n", " I th", "ink. ", "\n</thi", "nk>\n\nThe ", "answer")).toEqual([
      { type: "reasoning", text: "I th" },
      { type: "reasoning", text: "ink." },
      { type: "text", text: "The" },
      { type: "text", text: " answer" },
    ]);
    expect(join(tell("gpt_oss", "<|channel|>analysis<|message|>Hm", "m.<|end|><|start|>assistant"), "reasoning")).toBe(
      "Hmm.",
    );
  });

  it("has JSON and code that are not calls", () => {
    expect(join(tell("chatml-json", 'See {"answer": ', "5}", " here"), "text")).toBe('See {"answer": 5} here');
    expect(join(tell("chatml-json", "```js\nlet x = {", "};\n``` end"), "text")).toBe("```js\nlet x = {};\n``` end");
    expect(join(tell("python", "a\n```js\nx\n```\nb"), "text")).toBe("a\n```js\nx\n```\nb");
    expect(join(tell("mistral", "a [TOOL", "S] b"), "text")).toBe("a [TOOLS] b");
    expect(join(tell("qwen3_coder", "a <function", "> b"), "text")).toBe("a <function> b");
  });

  it("has no separators between calls", () => {
    const llama3 = getToolFormat("llama3_json");
    const { told, all } = stream(llama3, ["; ", calls.llama3_json!, "; ", calls.llama3_json!]);
    expect(told).toEqual([]);
    expect(all.map(({ type }) => type)).toEqual(["tool_call", "tool_call"]);
    expect(join(stream(llama3, ["; ", "so"]).told, "text")).toBe("; so");
  });
});
