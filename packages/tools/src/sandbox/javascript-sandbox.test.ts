import { afterAll, describe, expect, it } from "vitest";
import { JavaScriptSandbox } from "./javascript-sandbox.js";
import { SandboxExecutor } from "./sandbox-executor.js";

const limits = { timeoutS: 50, memoryMb: 32, outputBytes: 2000, workers: 2 };
const sandbox = new JavaScriptSandbox({ ...limits, cpuS: 30 });
/** A sandbox whose CPU limit stops programs. */
const short = new JavaScriptSandbox({ ...limits, cpuS: 0.4 });
const run = (code: string) => sandbox.run(code);
afterAll(() => Promise.all([sandbox.dispose(), short.dispose()]));

describe("JavaScript programs", () => {
  it("give their output and the value of the last expression", async () => {
    expect(await run("console.log('a', 1, [2, {b: null}], 3n); const x = 20; x * 2 + 2")).toEqual({
      status: "ok",
      output: 'a 1 [2,{"b":null}] 3n\n42\n',
      truncated: false,
    });
    expect((await run("const a = {}; a.a = a; a.f = () => 1; a")).output).toBe('{"a":"[Circular]","f":"[Function]"}\n');
    expect((await run("undefined")).output).toBe("");
    expect((await run("'☃ π 💡'")).output).toBe('"☃ π 💡"\n');
  });

  it("read their input line by line", async () => {
    const { output } = await sandbox.run("[readline(), readline(), readline()]", { stdin: "a\nb\n" });
    expect(output).toBe('["a","b",null]\n');
    const executor = new SandboxExecutor();
    const run = (language: string, code: string) => executor.run(code, { language, input: "3", timeoutS: 5 });
    expect(await run("js", "print(readline() * 2)")).toEqual({ stdout: "6\n" });
    expect((await run("javascript", "x")).error).toMatch(/^ReferenceError/);
    expect((await run("cobol", "x")).error).toBe("error: no sandbox for cobol");
    await executor.dispose();
  });

  it("may wait: promises, timers in order, await at the top level", async () => {
    const code = `setTimeout(() => console.log(3), 5000); setTimeout(console.log, 10, 2); Promise.resolve().then(() => console.log(1)); 0`;
    expect((await run(code)).output).toBe("1\n2\n3\n0\n");
    expect((await run("const x = await new Promise((done) => setTimeout(done, 100, 7)); console.log(x)")).output).toBe(
      "7\n",
    );
    expect((await run("(async () => 5)()")).output).toBe("5\n");
    expect((await run("new Promise(() => {})")).error).toMatch(/never settles/);
  });

  it("give their errors, with the output before them", async () => {
    expect(await run("console.log('before')\nnull.x")).toMatchObject({
      status: "error",
      output: "before\n",
      error: expect.stringMatching(/^TypeError: .*\n.*main\.js:2/s),
    });
    expect((await run("let x = ;")).error).toMatch(/^SyntaxError/);
    expect((await run("throw 5")).error).toBe("Uncaught 5");
    expect((await run("Promise.reject(new RangeError('no'))")).error).toMatch(/^RangeError: no/);
  });
});

describe("limits of JavaScript programs", () => {
  it("output and error share the room: an error gets half of it, and the unused part of the output's half", async () => {
    const bytes = async (printed: number) => {
      const fail = `throw new Error("y".repeat(9000))`;
      const { output, error, truncated } = await run(`print("x".repeat(${printed - 1}))\n${fail}`);
      return [output.length, error!.length, truncated];
    };
    // A cut keeps as many bytes at both ends: of an odd number one byte is left over.
    expect(await bytes(500)).toEqual([500, 1499, false]);
    expect(await bytes(1000)).toEqual([1000, 999, false]);
    expect(await bytes(1700)).toEqual([1001, 999, true]);
  });

  it("infinite loops are stopped, their output is kept, and the next program runs", async () => {
    const loops = [
      "console.log('in'); while (true) {}",
      // Without a return, so that no memory is kept.
      "const f = () => { Promise.resolve().then(f); }; f()",
      "setInterval(() => {}, 1)",
    ];
    for (const outcome of await Promise.all(loops.map((code) => short.run(code)))) expect(outcome.status).toBe("cpu");
    expect(await short.run("console.log('in'); for (;;);")).toEqual({
      status: "cpu",
      output: "in\n",
      truncated: false,
      error: "error: stopped after 0.4 s of CPU time",
    });
    expect((await short.run("1")).status).toBe("ok");
  });

  it("memory bombs get an error, and the next program runs", async () => {
    const bombs = [
      "const a = []; for (;;) a.push({})",
      "'x'.repeat(2 ** 28)",
      "new ArrayBuffer(2 ** 30)",
      "const f = () => f() + 1; f()",
    ];
    for (const code of bombs) {
      const { status, error } = await run(code);
      expect([status, error], code).toEqual(["error", expect.stringMatching(/out of memory|stack|length/i)]);
    }
    expect((await run("1")).output).toBe("1\n");
  });

  it("huge output is cut at the limit", async () => {
    const outcome = await run("for (let i = 0; i < 20000; i++) console.log('☃'.repeat(100))");
    expect(outcome).toMatchObject({ status: "ok", truncated: true });
    expect(Buffer.byteLength(outcome.output)).toBeLessThanOrEqual(2000);
    expect(outcome.output).toMatch(/^[☃\n]+$/);
  });

  it("an abort ends the program at once, running or waiting", async () => {
    const end = new AbortController();
    let running = 0;
    const onStart = () => void (++running === limits.workers && end.abort());
    const runs = [1, 2, 3, 4].map(() => sandbox.run("for (;;);", { signal: end.signal, onStart }));
    // Their limit of CPU time would end them as "cpu".
    for (const outcome of await Promise.all(runs)) expect(outcome.status).toBe("aborted");
    expect(running).toBe(limits.workers);
  });
});

describe("walls around JavaScript programs", () => {
  it.each([
    "typeof process + typeof require + typeof fetch + typeof Deno + typeof WebAssembly + typeof Worker",
    "console.log.constructor('return typeof process + typeof require + typeof fetch + typeof Deno + typeof WebAssembly + typeof Worker')()",
    "print.constructor.constructor('return typeof process + typeof require + typeof fetch + typeof Deno + typeof WebAssembly + typeof Worker')()",
  ])("see nothing of the host: %s", async (code) => {
    expect((await run(code)).output).toBe(`"${"undefined".repeat(6)}"\n`);
  });

  it.each(["import('node:fs')", "const fs = await import('fs'); fs", "import fs from 'fs'; await 0"])(
    "can load no module: %s",
    async (code) => {
      expect(await run(code)).toMatchObject({ status: "error", output: "" });
    },
  );

  it("leave nothing for the next program", async () => {
    await run(
      "globalThis.leak = 1; Array.prototype.leak = 1; console.log = () => {}; Object.freeze(JSON); JSON.leak = 2",
    );
    for (let i = 0; i < 4; i++) {
      expect((await run("[typeof leak, typeof [].leak, typeof JSON.leak]")).output).toBe(
        '["undefined","undefined","undefined"]\n',
      );
    }
  });
});
