import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  CalculatorTool,
  calculate,
  createTools,
  findArgumentError,
  formatNumber,
  Gsm8kTool,
  parseHermes,
} from "./index.js";

describe("calculate", () => {
  it("agrees with JavaScript on random expressions", () => {
    const number = fc.integer({ min: 0, max: 999 }).map(String);
    const { expression } = fc.letrec<{ expression: string; pair: string }>((tie) => ({
      expression: fc.oneof({ maxDepth: 4 }, number, tie("pair")),
      pair: fc
        .tuple(tie("expression"), fc.constantFrom("+", "-", "*", "/"), tie("expression"), fc.boolean())
        .map(([a, op, b, wrap]) => (wrap ? `(${a}${op}${b})` : `${a} ${op} ${b}`)),
    }));
    fc.assert(
      fc.property(expression, (text) => {
        fc.pre(text.length <= 200);
        const expected = Function(`return ${text}`)() as number;
        expect(calculate(text)).toEqual(Number.isFinite(expected) ? expected : null);
      }),
    );
  });

  it("refuses everything else, quickly", () => {
    for (const text of ["", "1+", "(1", "1)", "2**3", "1//2", "abc", "1 2", "process.exit()", "1/0", "(".repeat(199)])
      expect(calculate(text)).toBeNull();
    fc.assert(fc.property(fc.string(), (text) => void calculate(text)));
  });

  it("formats whole numbers and decimals", () => {
    expect([7, 0.1 + 0.2, 2 / 3, -0, 1e-12].map(formatNumber)).toEqual(["7", "0.3", "0.67", "0", "0"]);
  });
});

describe("parseHermes", () => {
  it("finds several calls, nested and escaped JSON, and text around them", () => {
    const turn = parseHermes(
      'hi <tool_call>\n{"name":"a","arguments":{"x":{"y":"\\"}"}}}\n</tool_call> and <tool_call>{"name":"b","arguments":"{\\"z\\":1}"}</tool_call> bye',
    );
    expect(turn.calls).toEqual([
      { name: "a", arguments: { x: { y: '"}' } } },
      { name: "b", arguments: { z: 1 } },
    ]);
    expect(turn.content).toBe("hi  and  bye");
  });

  it("reports malformed calls and never throws", () => {
    for (const text of [
      "<tool_call>",
      "<tool_call>{</tool_call>",
      '<tool_call>{"name":1}</tool_call>',
      '<tool_call>{"name":"a","arguments":[1]}</tool_call>',
      "<tool_call>null</tool_call>",
    ]) {
      expect(parseHermes(text).calls[0]!.error).toMatch(/^error: invalid call/);
    }
    const piece = fc.constantFrom("<tool_call>", "</tool_call>", "{", "}", '"', "name", ":", "\\", "x");
    fc.assert(fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => void parseHermes(pieces.join(""))));
  });

  it("takes linear time", () => {
    const time = (n: number) => {
      const text = "<tool_call>{".repeat(n);
      const start = performance.now();
      for (let i = 0; i < 5; i++) parseHermes(text);
      return performance.now() - start;
    };
    time(1000);
    expect(time(200_000)).toBeLessThan(2000);
  });
});

describe("tools", () => {
  it("calculator answers, and describes its arguments", async () => {
    const tool = new CalculatorTool();
    expect((await tool.execute("i", { expression: "2*(3+4)" })).response.text).toBe("14");
    expect((await tool.execute("i", { expression: "2*(" })).response.text).toBe("error: invalid expression");
    expect(findArgumentError(tool.schema, { expression: "1" })).toBeNull();
    expect(findArgumentError(tool.schema, { expression: 1 })).toMatch(/expression/);
    expect(findArgumentError(tool.schema, {})).toMatch(/expression/);
  });

  it("GSM8K tool rewards a first right answer and charges for wrong ones", async () => {
    const tool = new Gsm8kTool();
    await tool.create("i", { createKwargs: { ground_truth: "1200" } });
    expect((await tool.execute("i", { answer: "7" })).reward).toBe(-0.05);
    expect(await tool.calcReward("i")).toBe(0);
    expect((await tool.execute("i", { answer: "#### 1,200" })).reward).toBe(0);
    expect(await tool.calcReward("i")).toBe(1);
    await tool.release("i");
    expect(await tool.calcReward("i")).toBe(0);
  });

  it("class names resolve to built-ins, aliases and modules; others are an error that says what can be", async () => {
    const tools = await createTools(
      [{ class_name: "verl.tools.gsm8k_tool.Gsm8kTool" }, { class_name: "@cria/tools#CalculatorTool" }],
      ".",
    );
    expect([...tools.keys()]).toEqual(["calc_gsm8k_reward", "calculator"]);
    await expect(createTools([{ class_name: "./missing.js#Tool" }], "/")).rejects.toThrow(/cannot be loaded/);
    await expect(createTools([{ class_name: "Nothing" }], "/")).rejects.toThrow(/@cria\/tools#CalculatorTool/);
  });
});
