import { defineToolSchema, type ToolParser } from "@cria/tools";
import { resolveToolFormat } from "@cria/tools/internal";
import { describe, expect, it } from "vitest";
import { readAnswer } from "./read-answer.js";

const schema = defineToolSchema("f", "", { type: "object", properties: { x: { type: "integer" } } });
const read = (format: string | ToolParser, text: string) =>
  readAnswer(text, resolveToolFormat(format), [schema], (index) => `call_${index}`).message;
const functions = (format: string, text: string) => read(format, text).tool_calls?.map((call) => call.function);

describe("readAnswer", () => {
  it("puts thoughts, calls and words where clients look for them", () => {
    const call = '<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>';
    expect(read("hermes", `<think>\nHm.\n</think>\n\nI look.\n${call}\n${call}`)).toEqual({
      role: "assistant",
      content: "I look.",
      reasoning_content: "Hm.",
      tool_calls: [0, 1].map((index) => ({
        id: `call_${index}`,
        type: "function",
        function: { name: "f", arguments: '{"x":1}' },
      })),
    });
    expect(read("hermes", "<think>\n\n</think>\n\nYes. ")).toEqual({ role: "assistant", content: "Yes." });
    expect(read("hermes", "[THINK]cut")).toEqual({ role: "assistant", content: "", reasoning_content: "cut" });
    expect(read("hermes", `a <think>one</think>b${call}c<think>two</think> d`)).toMatchObject({
      content: "a bc d",
      reasoning_content: "one\ntwo",
    });
  });

  it("reads the channels of gpt-oss", () => {
    const thought = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant";
    expect(read("gpt_oss", `${thought}<|channel|>final<|message|>Yes.`)).toEqual({
      role: "assistant",
      content: "Yes.",
      reasoning_content: "Hm.",
    });
    const call = '<|channel|>commentary to=functions.f<|message|>{"x": 1}';
    expect(read("gpt_oss", thought + call)).toMatchObject({
      content: "",
      reasoning_content: "Hm.",
      tool_calls: [{ function: { name: "f", arguments: '{"x":1}' } }],
    });
    expect(read("gpt_oss", "plain")).toEqual({ role: "assistant", content: "plain" });
  });

  it("text around a call does not join to a tag", () => {
    const call = '<tool_call>{"name": "f", "arguments": {}}</tool_call>';
    expect(read("hermes", `<thi${call}nk>a`)).toMatchObject({ content: "<think>a" });
  });

  it("keeps the ids that a model gave, where templates take them, once", () => {
    const call = (id: string) => `[TOOL_CALLS]f[CALL_ID]${id}[ARGS]{}`;
    const ids = read("mistral", call("Abc123xyz") + call("Abc123xyz") + call("short")).tool_calls?.map(({ id }) => id);
    expect(ids).toEqual(["Abc123xyz", "call_1", "call_2"]);
  });

  it("gives a broken call to the client as the model's text, not as a JSON object", () => {
    const broken = '<tool_call>{"name": "f", "arguments": {"x": }}</tool_call>';
    expect(read("hermes", `So: ${broken}`)).toEqual({
      role: "assistant",
      content: "So:",
      tool_calls: [{ id: "call_0", type: "function", function: { name: "f", arguments: broken } }],
    });
    expect(functions("hermes", broken.slice(0, 30))).toEqual([{ name: "f", arguments: broken.slice(0, 30) }]);
    const list = '{"name": "f", "arguments": [1]}';
    expect(functions("chatml-json", list)).toEqual([{ name: "f", arguments: JSON.stringify(list) }]);
    expect(functions("chatml-json", `[${list}, {"name": "f", "arguments": {}}]`)).toEqual([
      { name: "f", arguments: `[${list}, {"name": "f", "arguments": {}}]` },
      { name: "f", arguments: "{}" },
    ]);
    const channel = "<|channel|>analysis to=functions.f<|message|>{}";
    expect(functions("gpt_oss", channel)).toEqual([{ name: "f", arguments: channel }]);
    const fence = "```python\nx";
    expect(functions("python", fence)).toEqual([{ name: "code_interpreter", arguments: fence }]);
    const xml = "<tool_call><function=f><parameter=x>1";
    expect(functions("qwen3_coder", xml)).toEqual([{ name: "f", arguments: xml }]);
    const named = '[TOOL_CALLS]f[ARGS]{"x": }';
    expect(functions("mistral", named)).toEqual([{ name: "f", arguments: named }]);
    const deepseek = '<｜tool▁call▁begin｜>f<｜tool▁sep｜>{"x"';
    expect(functions("deepseek_v3", deepseek)).toEqual([{ name: "f", arguments: deepseek }]);
  });

  it("leaves a call without a name in the content", () => {
    const nameless = "<tool_call>what?</tool_call>";
    expect(read("hermes", `So: ${nameless}`)).toEqual({ role: "assistant", content: `So: ${nameless}` });
    expect(read("mistral", "[TOOL_CALLS]")).toEqual({ role: "assistant", content: "[TOOL_CALLS]" });
  });

  it("white space, semicolons and commas between calls say nothing", () => {
    const call = '{"name": "f", "parameters": {}}';
    expect(read("llama3_json", `${call}; ${call}`).content).toBe("");
    expect(read("llama3_json", `; ${call}`).content).toBe("");
    expect(read("llama3_json", "; ").content).toBe(";");
  });

  it("takes a parser of a user's", () => {
    const mine: ToolParser = (text) => ({ content: text.replace("CALL", ""), calls: [{ name: "f", arguments: {} }] });
    expect(read(mine, "<think>CALL</think> a CALL")).toMatchObject({
      content: "a",
      reasoning_content: "CALL",
      tool_calls: [{ function: { name: "f", arguments: "{}" } }],
    });
  });
});
