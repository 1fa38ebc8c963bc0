/**
 * Runs Python programs in Pyodide, in a realm without a way out (see python-realm.mjs). After a program the interpreter
 * is restored to its first state, or replaced where that is impossible.
 *
 * A child without a snapshot starts Python once, the slow way, and hands out its memory: the others start from that.
 */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import vm from "node:vm";
import { readFrame, readJson, writeFrame } from "./frames.mjs";
import { limitWasmMemory, PAGE } from "./limit-wasm-memory.mjs";
import { IMPORT_RULES } from "./python-imports.mjs";
import { REALM } from "./python-realm.mjs";
import { SETUP } from "./python-setup.mjs";
import { servePrograms } from "./serve-programs.mjs";

const settings = readJson();
const { folder, memoryMb, diskMb, seed } = settings;
const MIB = 2 ** 20;
const limits = { diskBytes: diskMb * MIB, importRules: IMPORT_RULES };
const snapshot = /** @type {Buffer} */ (readFrame());
const makesSnapshot = snapshot.length === 0;

/** Files that the realm may read, by name. */
const files = new Map([
  ["snapshot", snapshot],
  ["/pyodide/python_stdlib.zip", readFileSync(join(folder, "python_stdlib.zip"))],
  [
    "/pyodide/pyodide.asm.wasm",
    limitWasmMemory(readFileSync(join(folder, "pyodide.asm.wasm")), Math.floor((memoryMb * MIB) / PAGE)),
  ],
]);
/** V8 keeps compiled code while a reference to it lives, and gives it to each realm that compiles the same bytes. */
export const compiled = new WebAssembly.Module(/** @type {BufferSource} */ (files.get("/pyodide/pyodide.asm.wasm")));

/** Turns a script of Pyodide into a plain script: the realm has neither modules nor their addresses. */
function readScript(name, ending, edit = (source) => source) {
  const source = readFileSync(join(folder, name), "utf8")
    .replaceAll(/(?<![\w$.])import\s*(\/\*[^*]*\*\/\s*)?\(/g, "noImport(")
    .replaceAll("import.meta.url", '"file:///pyodide/module.js"')
    .replace(/export default (\w+);\s*$/, "$1");
  return new vm.Script(edit(source) + ending, { filename: name });
}

const LINKING = "function getWasmImports(){";
const scripts = {
  realm: new vm.Script(REALM, { filename: "python-realm.mjs" }),
  create: readScript("pyodide.asm.mjs", "", (source) => {
    if (!source.includes(LINKING)) throw new Error("this Pyodide links its imports elsewhere");
    return source.replace(LINKING, `${LINKING}sealImports(wasmImports);`);
  }),
  pyodide: readScript("pyodide.js", ";0"),
};
const { info } = JSON.parse(readFileSync(join(folder, "pyodide-lock.json"), "utf8"));
const lock = JSON.stringify({ info, packages: {} });

/** Python in a new realm. `print` may change from program to program. */
async function startPython(print) {
  const host = {
    now: () => performance.now(),
    random: (count) => randomBytes(Math.min(count, 65_536)).toString("base64"),
    size: (name) => /** @type {Uint8Array} */ (files.get(name)).length,
    fill: (name, target) => {
      target.set(files.get(name));
    },
    take: (source, target) => {
      target.set(source);
    },
    print: (text) => {
      print.write(String(text));
    },
  };
  const context = vm.createContext(Object.create(null), { name: "python" });
  const realm = scripts.realm.runInContext(context)(host, limits);
  const create = scripts.create.runInContext(context);
  scripts.pyodide.runInContext(context);
  return realm.load(create, "/pyodide/", lock, SETUP, snapshot.length, makesSnapshot);
}

if (makesSnapshot) {
  const python = await startPython({ write: () => {} });
  const memory = new Uint8Array(python.size);
  python.copyTo(memory);
  writeFrame(memory);
} else {
  /** @type {{ write: (text: string) => unknown }} */
  const print = { write: () => {} };
  let python = null;
  await servePrograms(settings, async () => {
    if (!python?.restore()) python = await startPython(print);
    return ({ code, stdin }, write) => {
      print.write = write;
      try {
        return python.run(code, seed, stdin) || undefined;
      } catch (error) {
        return `error: the interpreter ended (${String(error?.message).slice(-300)})`;
      } finally {
        print.write = () => {};
      }
    };
  });
}
