/**
 * Runs JavaScript programs in QuickJS, an interpreter compiled to WebAssembly. A program sees the language and what the
 * prelude gives it; it has a fresh interpreter in fresh memory, so nothing is left of the one before.
 */
import { readFile } from "node:fs/promises";
import { parentPort, workerData } from "node:worker_threads";
import { findCpuFile, lockRealm } from "./lock-realm.mjs";
import { writeOutput } from "./output-buffer.mjs";

const { newQuickJSWASMModuleFromVariant, newVariant } = await import(workerData.core);
const { default: base } = await import(workerData.variant);
const wasmModule = await WebAssembly.compile(await readFile(new URL(workerData.wasm)));
const variant = newVariant(base.default ?? base, { wasmModule });

/** `console`, timers in virtual time (nothing waits), and the printing of values. Runs inside of the interpreter. */
const PRELUDE = `((print, input) => {
  const { stringify } = JSON;
  const format = (value, top) => {
    if (typeof value === "string") return top ? value : stringify(value);
    if (typeof value === "bigint") return value + "n";
    if (typeof value === "function") return "[Function " + (value.name || "anonymous") + "]";
    if (value instanceof Error) return value.name + ": " + value.message;
    if (typeof value !== "object" || value === null) return String(value);
    const seen = [];
    const replace = function (key, inner) {
      if (typeof inner === "bigint") return inner + "n";
      if (typeof inner === "function") return "[Function]";
      if (inner instanceof Map) return { Map: [...inner] };
      if (inner instanceof Set) return { Set: [...inner] };
      if (typeof inner === "object" && inner !== null) {
        while (seen.length > 0 && seen[seen.length - 1] !== this) seen.pop();
        if (seen.includes(inner)) return "[Circular]";
        seen.push(inner);
      }
      return inner;
    };
    return stringify(value, replace) ?? String(value);
  };
  const log = (...values) => print(values.map((value) => format(value, true)).join(" ") + "\\n");
  globalThis.console = { log, info: log, debug: log, warn: log, error: log };
  globalThis.print = log;
  const lines = input === "" ? [] : input.replace(/\\n$/, "").split("\\n");
  globalThis.readline = () => lines.shift() ?? null;
  let timers = [];
  let now = 0;
  let nextId = 1;
  const add = (f, ms, args, every) => {
    const id = nextId++;
    timers.push({ id, at: now + Math.max(Number(ms) || 0, 1), f, args, every });
    return id;
  };
  globalThis.setTimeout = (f, ms, ...args) => add(f, ms, args, null);
  globalThis.setInterval = (f, ms, ...args) => add(f, ms, args, Math.max(Number(ms) || 0, 1));
  globalThis.clearTimeout = globalThis.clearInterval = (id) => {
    timers = timers.filter((timer) => timer.id !== id);
  };
  const runTimer = () => {
    const next = timers.reduce((best, timer) => (best && best.at <= timer.at ? best : timer), null);
    if (!next) return false;
    now = next.at;
    if (next.every === null) timers = timers.filter((timer) => timer !== next);
    else next.at += next.every;
    next.f(...next.args);
    return true;
  };
  return { format, runTimer };
})`;

/**
 * @param {{ code: string, stdin: string, memoryMb: number }} job
 * @param {(text: string) => void} write
 * @returns {Promise<string | undefined>} the program's error
 */
async function runProgram({ code, stdin, memoryMb }, write) {
  const quickjs = await newQuickJSWASMModuleFromVariant(variant);
  const runtime = quickjs.newRuntime();
  runtime.setMemoryLimit(memoryMb * 1024 * 1024);
  runtime.setMaxStackSize(512 * 1024);
  const vm = runtime.newContext();
  const describe = (handle) => {
    const error = vm.dump(handle);
    if (typeof error !== "object" || error === null || !("message" in error)) return `Uncaught ${String(error)}`;
    const stack = String(error.stack ?? "").trimEnd();
    return `${error.name}: ${error.message}${stack ? `\n${stack}` : ""}`;
  };
  const print = vm.newFunction("print", (text) => write(vm.getString(text)));
  const setUp = vm.unwrapResult(vm.evalCode(PRELUDE));
  const prelude = vm.unwrapResult(vm.callFunction(setUp, vm.undefined, print, vm.newString(stdin)));
  const runTimer = vm.getProp(prelude, "runTimer");

  let result = vm.evalCode(code, "main.js");
  // A script has no await at its top level, a module does, but gives no value.
  if (result.error && /\bawait\b/.test(code) && vm.dump(result.error).name === "SyntaxError") {
    result = vm.evalCode(code, "main.js", { type: "module" });
  }
  if (result.error) return describe(result.error);
  for (;;) {
    const jobs = runtime.executePendingJobs();
    if (jobs.error) return describe(jobs.error);
    const timer = vm.callFunction(runTimer, vm.undefined);
    if (timer.error) return describe(timer.error);
    if (!vm.dump(timer.value)) break;
  }
  let value = result.value;
  const state = vm.getPromiseState(value);
  if (state.type === "rejected") return describe(state.error);
  if (state.type === "pending") return "Error: a promise was awaited that nothing resolves";
  value = state.value;
  const isModule = vm.typeof(value) === "object" && vm.dump(vm.getProp(value, "constructor")) === undefined;
  if (vm.typeof(value) === "undefined" || isModule) return undefined;
  const text = vm.unwrapResult(vm.callFunction(vm.getProp(prelude, "format"), vm.undefined, value));
  write(`${vm.getString(text)}\n`);
  return undefined;
}

parentPort.on("message", async ({ job, output }) => {
  let error;
  try {
    error = await runProgram(job, (text) => writeOutput(output, text));
  } catch (failure) {
    // The interpreter ran out of memory where it could not say so itself.
    error = `InternalError: ${failure?.message ?? failure}`;
  }
  parentPort.postMessage({ status: error === undefined ? "ok" : "error", error });
});

const cpuFile = findCpuFile();
lockRealm();
parentPort.postMessage({ ready: true, cpuFile });
