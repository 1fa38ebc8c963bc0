/**
 * Runs JavaScript programs in QuickJS, an interpreter compiled to WebAssembly. A program sees only the language and the
 * prelude's functions; it has a new interpreter in new memory, so nothing is left of the previous program.
 *
 * Only text leaves a program, made and cut inside the interpreter: never an object of it, which can have any size.
 */
import { readFileSync } from "node:fs";
import { readJson } from "./frames.mjs";
import { PAGE } from "./limit-wasm-memory.mjs";
import { servePrograms } from "./serve-programs.mjs";

const settings = readJson();
const { newQuickJSWASMModuleFromVariant, newVariant } = await import(settings.core);
const { default: base } = await import(settings.variant);
const wasmModule = new WebAssembly.Module(readFileSync(new URL(settings.wasm)));

/** Initial memory of QuickJS: its stack, its data, and room for the first objects. */
const INITIAL_MB = 16;
/** Released only at the end, to report an error. */
const SPARE_MB = 1;
const MIB = 2 ** 20;

/**
 * `console`, timers in virtual time (nothing waits), and texts of values. It runs inside the interpreter, before the
 * program, which may change every built-in: so it keeps the functions that cut texts.
 */
const PRELUDE = `((write, input) => {
  const { stringify } = JSON;
  const { apply } = Reflect;
  const { slice } = String.prototype;
  const string = String;
  let left = write("");
  // One more than fits, so that the cut shows.
  const print = (text) => {
    if (left >= 0) left = write(apply(slice, text, [0, left + 1]));
  };
  const format = (value, top) => {
    if (typeof value === "string") return top ? value : stringify(value);
    if (typeof value === "bigint") return value + "n";
    if (typeof value === "function") return "[Function " + (value.name || "anonymous") + "]";
    if (value instanceof Error) return value.name + ": " + value.message;
    if (typeof value !== "object" || value === null) return string(value);
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
    return stringify(value, replace) ?? string(value);
  };
  const show = (value) => print(format(value, false) + "\\n");
  const describe = (error, limit) => {
    const read = (value) => apply(slice, string(value), [0, limit]);
    const isObject = typeof error === "object" ? error !== null : typeof error === "function";
    if (!isObject || !("message" in error)) return "Uncaught " + read(error);
    const stack = read(error.stack ?? "");
    return read(error.name) + ": " + read(error.message) + (stack && "\\n" + stack);
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
    if (!next) return 0;
    now = next.at;
    if (next.every === null) timers = timers.filter((timer) => timer !== next);
    else next.at += next.every;
    next.f(...next.args);
    return 1;
  };
  return { show, describe, runTimer };
})`;

/** @returns {Promise<import("./serve-programs.mjs").RunProgram>} */
async function makeInterpreter() {
  const { memoryMb } = settings;
  const maximum = ((memoryMb + INITIAL_MB) * MIB) / PAGE;
  const wasmMemory = new WebAssembly.Memory({ initial: (INITIAL_MB * MIB) / PAGE, maximum });
  const variant = newVariant(base.default ?? base, { wasmModule, wasmMemory });
  const quickjs = await newQuickJSWASMModuleFromVariant(variant);
  const runtime = quickjs.newRuntime();
  runtime.setMemoryLimit(memoryMb * MIB);
  runtime.setMaxStackSize(512 * 1024);
  return (job, write) => runProgram(runtime, runtime.newContext(), job, write);
}

/** @returns {string | undefined} the program's error */
function runProgram(runtime, vm, { code, stdin }, write) {
  const printed = vm.newFunction("write", (text) => vm.newNumber(write(vm.getString(text))));
  const setUp = vm.unwrapResult(vm.evalCode(PRELUDE));
  const prelude = vm.unwrapResult(vm.callFunction(setUp, vm.undefined, printed, vm.newString(stdin)));
  const [show, describe, runTimer] = ["show", "describe", "runTimer"].map((name) => vm.getProp(prelude, name));
  const describeError = (handle) => {
    runtime.setMemoryLimit((settings.memoryMb + SPARE_MB) * MIB);
    const text = vm.callFunction(describe, vm.undefined, handle, vm.newNumber(settings.outputBytes));
    // A getter of the error that throws, or memory that ran out.
    return text.error ? "InternalError: out of memory, or an error that cannot be shown" : vm.getString(text.value);
  };

  // A script has no await at its top level; a module has, but gives no value.
  const isModule = /\bawait\b/.test(code) && vm.evalCode(code, "main.js", { compileOnly: true }).error !== undefined;
  const result = vm.evalCode(code, "main.js", isModule ? { type: "module" } : undefined);
  if (result.error) return describeError(result.error);
  for (;;) {
    const jobs = runtime.executePendingJobs();
    if (jobs.error) return describeError(jobs.error);
    const timer = vm.callFunction(runTimer, vm.undefined);
    if (timer.error) return describeError(timer.error);
    if (vm.typeof(timer.value) !== "number" || vm.getNumber(timer.value) === 0) break;
  }
  const state = vm.getPromiseState(result.value);
  if (state.type === "rejected") return describeError(state.error);
  if (state.type === "pending") return "Error: the program awaits a promise that never settles";
  if (isModule || vm.typeof(state.value) === "undefined") return undefined;
  const shown = vm.callFunction(show, vm.undefined, state.value);
  return shown.error ? describeError(shown.error) : undefined;
}

await servePrograms(settings, makeInterpreter);
