/**
 * Runs one Python program in Pyodide, in a realm that has no way out (see python-realm.mjs), and is then thrown away. With
 * `makeSnapshot` it starts Python once and hands out its memory, from which the others start several times as fast.
 */
import { randomBytes } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import vm from "node:vm";
import { parentPort, workerData } from "node:worker_threads";
import { findCpuFile, lockRealm } from "./lock-realm.mjs";
import { writeOutput } from "./output-buffer.mjs";
import { REALM } from "./python-realm.mjs";
import { SETUP } from "./python-setup.mjs";

const { folder, snapshot, makeSnapshot, limits } = workerData;
const port = parentPort;
const inFolder = (name) => join(folder, name);
const now = () => performance.now();

/** The program's output and input, from when it is known. */
let output = null;
let stdin = [];

/** What may be read into the realm, by name: nothing else can be asked for. */
const files = new Map(["pyodide.asm.wasm", "python_stdlib.zip"].map((name) => [`/pyodide/${name}`, inFolder(name)]));
const host = {
  now,
  random: (count) => randomBytes(Math.min(count, 65_536)).toString("base64"),
  size: (name) => statSync(files.get(name)).size,
  fill: (name, target) => {
    target.set(name === "snapshot" ? new Uint8Array(snapshot) : readFileSync(files.get(name)));
  },
  take: (source, target) => new Uint8Array(target).set(source),
  print: (text) => {
    if (output) writeOutput(output, String(text));
  },
  stdinLine: () => stdin.shift(),
};

const context = vm.createContext(Object.create(null), { name: "python" });
const realm = vm.runInContext(REALM, context)(host, limits);

/** A script of Pyodide as plain script: modules and their address do not exist in the realm. */
function runScript(name, ending) {
  const source = readFileSync(inFolder(name), "utf8")
    .replaceAll(/(?<![\w$.])import\s*(\/\*[^*]*\*\/\s*)?\(/g, "noImport(")
    .replaceAll("import.meta.url", '"file:///pyodide/module.js"')
    .replace(/export default (\w+);\s*$/, "$1");
  return new vm.Script(source + ending, { filename: name }).runInContext(context);
}

const create = runScript("pyodide.asm.mjs", "");
runScript("pyodide.js", ";0");
const { info } = JSON.parse(readFileSync(inFolder("pyodide-lock.json"), "utf8"));
const lock = JSON.stringify({ info, packages: {} });
const size = snapshot?.byteLength ?? 0;
const python = await realm.load(create, "/pyodide/", lock, SETUP, size, makeSnapshot);

if (makeSnapshot) {
  const memory = new SharedArrayBuffer(python.size);
  python.copyTo(memory);
  port.postMessage({ snapshot: memory });
} else {
  port.on("message", ({ job, output: buffer }) => {
    output = buffer;
    stdin = job.stdin === "" ? [] : job.stdin.split(/(?<=\n)/);
    const error = python.run(job.code, job.seed);
    port.postMessage({ status: error === "" ? "ok" : "error", error: error === "" ? undefined : error });
  });
  const cpuFile = findCpuFile();
  lockRealm();
  port.postMessage({ ready: true, cpuFile });
}
