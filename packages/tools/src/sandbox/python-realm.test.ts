import vm from "node:vm";
import { describe, expect, it } from "vitest";
import { IMPORT_RULES } from "./python-imports.mjs";
import { REALM } from "./python-realm.mjs";

/** A stand-in for Pyodide with only the parts that the realm's code touches. */
const FAKE_PYODIDE = `globalThis.loadPyodide = async () => {
  class ErrnoError extends Error { constructor(errno) { super("errno " + errno); } }
  const MEMFS = { expandFileStorage() {}, resizeFileStorage() {}, stream_ops: { write() {} } };
  const stream = { stream_ops: { write() {} } };
  const FS = {
    ErrnoError, filesystems: { MEMFS }, streams: [stream], nameTable: [], root: { contents: {} }, isDir: () => true,
  };
  const _module = {
    HEAPU8: new Uint8Array(64), wasmTable: [], _malloc: () => 0,
    _PyImport_AddModule: () => 0, _PyObject_GetAttrString: () => 0, _emscripten_stack_get_current: () => 0,
  };
  return { FS, _module, runPython: () => 0, setStdin() {}, setStdout() {}, setStderr() {} };
};`;

/** Imports in the form in which Pyodide's script hands them over. */
const LINKED_IMPORTS = `globalThis.imports = {};
for (const name of ["fd_write", "__syscall_socket", "JsProxy_GetAttr_js", "an_import_of_tomorrow"])
  imports[name] = Object.assign((value) => "called with " + value, { sig: "i" });
sealImports(imports);`;

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
  };
  const realm = vm.runInContext(REALM, context)(host, { diskBytes: 2 ** 20, importRules: IMPORT_RULES });
  vm.runInContext(FAKE_PYODIDE, context);
  vm.runInContext(LINKED_IMPORTS, context);
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
    for (const name of [
      "process",
      "require",
      "module",
      "fetch",
      "WebSocket",
      "Worker",
      "read",
      "readbuffer",
      "load",
      "sealImports",
    ]) {
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
    // Errors from a host function are made anew inside.
    visit(run("let caught; try { os.system('', ['head -c9']) } catch (error) { caught = error } caught"), "error");
    visit(run("Error.prepareStackTrace = (e, frames) => frames; const { stack } = new Error('x'); stack"), "stack");
    const frames = run("stack.map((frame) => [frame.getThis(), frame.getFunction()])");
    visit(frames, "frames");
    expect(seen.size).toBeGreaterThan(500);
    expect(foreign).toEqual([]);
  });

  it("lets WebAssembly call files and clocks, and nothing else", async () => {
    const run = await makeSealedRealm();
    expect(run("imports.fd_write(1)")).toBe("called with 1");
    expect(run("imports.__syscall_socket()")).toBe(-52);
    expect(run("imports.JsProxy_GetAttr_js()")).toBe("Error");
    expect(run("imports.an_import_of_tomorrow()")).toBe("Error");
    expect(run("imports.fd_write.sig")).toBe("i");
  });
});
