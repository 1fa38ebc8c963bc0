import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  CalculatorTool,
  calculate,
  createTools,
  findArgumentError,
  formatNumber,
  Gsm8kTool,
  loadToolConfig,
} from "./index.js";

fc.configureGlobal({ seed: Number(process.env.CRIA_SEED ?? 1) });

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

  it("GSM8K tool keeps trajectories apart, and a right answer once given", async () => {
    const tool = new Gsm8kTool();
    await tool.create("a", { createKwargs: { ground_truth: "1" } });
    await tool.create("b", { createKwargs: { ground_truth: "2" } });
    await tool.execute("a", { answer: "1" });
    expect([await tool.calcReward("a"), await tool.calcReward("b")]).toEqual([1, 0]);
    expect((await tool.execute("a", { answer: "9" })).reward).toBe(-0.05);
    expect(await tool.calcReward("a")).toBe(1);
    await tool.release("a");
    await tool.release("a");
    expect((await tool.execute("b", { answer: "2" })).reward).toBe(0);
    await expect(tool.execute("a", { answer: "1" })).rejects.toMatchObject({
      code: "tool/no-instance",
      subject: "instance a",
    });
  });

  it("class names resolve to built-ins, aliases and modules; an error lists the known ones", async () => {
    const tools = await createTools(
      [{ class_name: "verl.tools.gsm8k_tool.Gsm8kTool" }, { class_name: "@cria/tools#CalculatorTool" }],
      ".",
    );
    expect([...tools.keys()]).toEqual(["calc_gsm8k_reward", "calculator"]);
    await expect(createTools([{ class_name: "./missing.js#Tool" }], "/")).rejects.toMatchObject({
      code: "tool/not-found",
      subject: 'class_name "./missing.js#Tool"',
    });
    await expect(createTools([{ class_name: "Nothing" }], "/")).rejects.toMatchObject({
      code: "tool/not-found",
      subject: 'class_name "Nothing"',
      expected: expect.stringContaining("@cria/tools#CalculatorTool"),
    });
    for (const [name, nearest] of [
      ["@cria/tools#CalcluatorTool", "@cria/tools#CalculatorTool"],
      ["CalculatorTool", "@cria/tools#CalculatorTool"],
      ["verl.tools.gsm8k_tool.GSM8kTool", "verl.tools.gsm8k_tool.Gsm8kTool"],
    ])
      await expect(createTools([{ class_name: name! }], "/")).rejects.toMatchObject({
        code: "tool/not-found",
        expected: `perhaps "${nearest}"`,
      });
  });

  it("an error inside of a module is reported alone, without the names of others", async () => {
    const folder = mkdtempSync(join(tmpdir(), "cria-tools-"));
    writeFileSync(join(folder, "tool.ts"), "export class Tool { constructor( { }\n");
    const refused = createTools([{ class_name: "./tool.ts#Tool" }], folder);
    await expect(refused).rejects.toMatchObject({
      code: "tool/not-found",
      subject: 'class_name "./tool.ts#Tool"',
      expected: undefined,
      received: expect.stringContaining("tool.ts"),
      remedy: undefined,
    });
    await expect(createTools([{ class_name: "./tol.ts#Tool" }], folder)).rejects.toMatchObject({
      code: "tool/not-found",
      subject: 'class_name "./tol.ts#Tool"',
      remedy: expect.stringContaining(folder),
    });
    rmSync(folder, { recursive: true });
  });

  it("a file's entries are checked: unknown keys and wrong values, with their place", async () => {
    const folder = mkdtempSync(join(tmpdir(), "cria-tools-"));
    const load = (text: string) => {
      writeFileSync(join(folder, "tools.yaml"), text);
      return loadToolConfig(join(folder, "tools.yaml"));
    };
    const tool = '"@cria/tools#CalculatorTool"';
    expect([...(await load(`[{ _target_: ${tool} }]`)).keys()]).toEqual(["calculator"]);
    await expect(load(`tools: [{ class_name: ${tool}, confg: {} }]`)).rejects.toMatchObject({
      code: "config/unknown-key",
      subject: expect.stringContaining("tools.yaml: tools[0].confg"),
      expected: "class_name, config, tool_schema, mcp",
    });
    await expect(load(`tools: [{ class_name: ${tool}, config: 3 }]`)).rejects.toMatchObject({
      code: "config/bad-value",
      subject: expect.stringContaining("tools.yaml: tools[0].config"),
      received: "3",
    });
    await expect(load("tools: [{ config: {} }]")).rejects.toMatchObject({
      code: "config/bad-value",
      subject: expect.stringContaining("tools.yaml: tools[0].class_name"),
      received: "nothing",
    });
    await expect(load("tool: []")).rejects.toMatchObject({
      code: "config/bad-value",
      subject: expect.stringContaining("tools.yaml"),
    });
    rmSync(folder, { recursive: true });
  });
});
