import vm from "node:vm";
import { describe, expect, it } from "vitest";
import { REALM } from "./python-realm.mjs";

/** What is left of Pyodide here: the parts that the realm's own code touches. */
const FAKE_PYODIDE = `globalThis.loadPyodide = async () => {
  class ErrnoError extends Error { constructor(errno) { super("errno " + errno); } }
  const MEMFS = { expandFileStorage() {}, resizeFileStorage() {}, stream_ops: { write() {} } };
  const stream = { stream_ops: { write() {} } };
  const FS = { ErrnoError, filesystems: { MEMFS }, streams: [stream] };
  const globals = new Map([["_cria_take_main", () => (code) => code]]);
  return { FS, globals, runPython: () => 0, setStdout() {}, setStderr() {} };
};`;

async function makeSealedRealm() {
  const context = vm.createContext(Object.create(null));
  const host = {
    now: () => 1,
    random: () => "",
    size: () => {
      throw new Error("an error of the outer realm");
    },
    fill: () => {},
    take: () => {},
    print: () => {},
    stdinLine: () => undefined,
  };
  const realm = vm.runInContext(REALM, context)(host, { memoryBytes: 2 ** 20, diskBytes: 2 ** 20 });
  vm.runInContext(FAKE_PYODIDE, context);
  await realm.load(null, "/", "{}", "", 0, false);
  return (code: string) => vm.runInContext(`try { ${code} } catch (error) { String(error.name) }`, context);
}

describe("the realm of Python", () => {
  it.each([
    "eval('1')",
    "Function('return 1')()",
    "(() => {}).constructor('return 1')()",
    "(async () => {}).constructor('return 1')()",
    "(function* () {}).constructor('return 1')()",
    "(async function* () {}).constructor('return 1')()",
    "Reflect.construct((() => {}).constructor, ['return 1'])()",
    "performance.now.constructor('return 1')()",
    "class A extends (() => {}).constructor {}; new A('return 1')()",
  ])("makes no code from text: %s", async (code) => {
    expect((await makeSealedRealm())(code)).toMatch(/^(EvalError|TypeError)$/);
  });

  it("names nothing of Node or of the shell it pretended to be", async () => {
    const run = await makeSealedRealm();
    for (const name of ["process", "require", "module", "fetch", "WebSocket", "Worker", "read", "readbuffer", "load"]) {
      expect(run(`typeof ${name}`), name).toBe("undefined");
    }
  });

  it("holds no object of the outer realm, wherever one looks", async () => {
    const run = await makeSealedRealm();
    const outer = new Set<unknown>([Object.prototype, Function.prototype, Array.prototype, Error.prototype]);
    const seen = new Set<unknown>();
    const foreign: string[] = [];
    const visit = (value: unknown, path: string) => {
      if ((typeof value !== "object" && typeof value !== "function") || value === null || seen.has(value)) return;
      seen.add(value);
      if (outer.has(value)) foreign.push(path);
      visit(Object.getPrototypeOf(value), `${path}.__proto__`);
      for (const key of Reflect.ownKeys(value)) {
        const property = Object.getOwnPropertyDescriptor(value, key)!;
        for (const part of [property.value, property.get, property.set]) visit(part, `${path}.${String(key)}`);
      }
    };
    visit(run("globalThis"), "globalThis");
    // Errors that cross from a host function are made anew inside.
    visit(run("let caught; try { os.system('', ['head -c9']) } catch (error) { caught = error } caught"), "error");
    visit(run("Error.prepareStackTrace = (e, frames) => frames; const { stack } = new Error('x'); stack"), "stack");
    const frames = run("stack.map((frame) => [frame.getThis(), frame.getFunction()])");
    visit(frames, "frames");
    expect(seen.size).toBeGreaterThan(500);
    expect(foreign).toEqual([]);
  });

  it("lets memory grow up to its limit only", async () => {
    const run = await makeSealedRealm();
    expect(run("globalThis.memory = new WebAssembly.Memory({ initial: 1 }); globalThis.memory.grow(10)")).toBe(1);
    expect(run("memory.grow(10)")).toBe("RangeError");
    expect(run("WebAssembly.Memory.prototype.grow = null; memory.grow(10)")).toBe("RangeError");
  });
});
