import { describe, expect, it } from "vitest";
import { CodeTool, createTools, disposeTools } from "./index.js";

describe("code tool", () => {
  it("runs JavaScript, returns its output, and counts how it ended", async () => {
    const config = { language: "javascript", cpu_s: 0.5, output_bytes: 200 };
    const tools = await createTools([{ class_name: "@cria/tools#CodeTool", config }], ".");
    const tool = tools.get("code_interpreter")!;
    const run = async (code: string) => {
      const { response, metrics } = await tool.execute("i", { code });
      return [response.text, metrics];
    };
    expect(await run("console.log(1); 6 * 7")).toEqual(["1\n42", { code_ok: 1 }]);
    expect(await run("")).toEqual(["(no output)", { code_ok: 1 }]);
    expect((await run("console.log(1); x"))[0]).toMatch(/^1\nReferenceError: .*x.*/s);
    expect(await run("for (;;);")).toEqual(["error: stopped after 0.5 s of CPU time", { code_ok: 0, code_cpu: 1 }]);
    expect((await run("'a'.repeat(500)"))[0]).toMatch(/^"a{199}\n\(output cut here\)$/);
    await disposeTools(tools.values());
  });

  it("an error's text counts as output, of any length", async () => {
    for (const [language, code, says] of [
      ["javascript", "throw 'x'.repeat(2e7)", /^Uncaught x+/],
      ["javascript", "console.log('y'.repeat(150)); throw new Error('x'.repeat(2e7))", /^y{150}\nError: x+/],
      ["python", "print('y' * 150)\nraise ValueError('x' * 2 * 10 ** 7)", /^y{150}\n/],
    ] as const) {
      const tool = new CodeTool({ language, output_bytes: 400, num_workers: 1 });
      const { text } = (await tool.execute("i", { code })).response;
      await tool.dispose();
      expect(text).toMatch(says);
      expect(Buffer.byteLength(text!)).toBeLessThan(450);
    }
  });

  it("runs Python under the field's class name and schema", async () => {
    const schema = {
      type: "function" as const,
      function: {
        name: "run_code",
        description: "A tool for executing code.",
        parameters: { type: "object", properties: { code: { type: "string" } }, required: ["code"] },
      },
    };
    const class_name = "verl.tools.sandbox_fusion_tools.SandboxFusionTool";
    const config = { default_timeout: 10, memory_limit_mb: 128, num_workers: 1 };
    const tools = await createTools([{ class_name, config, tool_schema: schema }], ".");
    const tool = tools.get("run_code")!;
    const { response } = await tool.execute("i", { code: "print(int(input()) * 2)" }, { stdin: "21\n" });
    expect(response.text).toBe("42");
    await disposeTools(tools.values());
  });

  it("refuses a wrong config", () => {
    expect(() => new CodeTool({ language: "perl" })).toThrow(
      expect.objectContaining({ issues: [expect.objectContaining({ path: ["language"] })] }),
    );
    expect(() => new CodeTool({ memory_mb: 1 })).toThrow(
      expect.objectContaining({ issues: [expect.objectContaining({ path: ["memory_mb"] })] }),
    );
  });
});
