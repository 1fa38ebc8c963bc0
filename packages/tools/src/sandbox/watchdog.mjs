/**
 * The thread of a child that holds its program to the limits: CPU and wall time, and the memory of the whole process.
 * It needs neither the program's thread, which may hang, nor the parent, which may be busy for seconds or dead. When a
 * program exceeds a limit, this thread answers with the output so far and kills the process.
 */
import process from "node:process";
import { workerData } from "node:worker_threads";
import { ANSWERED, CPU_MS, JOB, RSS_MB, RUNNING, STATE, WALL_MS } from "./control.mjs";
import { writeJson } from "./frames.mjs";
import { readOutput } from "./output-buffer.mjs";

const { controlBuffer, output, parentPid } = workerData;
const control = new Int32Array(controlBuffer);
/** Milliseconds between two checks, by which a program may exceed its limits. */
const TICK_MS = 10;
const IDLE_TICK_MS = 100;
/** More than this could block the pipe while the memory grows on. */
const MEMORY_OUTPUT_UNITS = 32_768;

const readCpuMs = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

function end(status, error) {
  if (Atomics.compareExchange(control, STATE, RUNNING, ANSWERED) === RUNNING) {
    const { text, truncated } = readOutput(output);
    const cut = status === "memory" && text.length > MEMORY_OUTPUT_UNITS;
    const kept = cut ? text.slice(0, MEMORY_OUTPUT_UNITS) : text;
    writeJson({ answer: { status, output: kept, truncated: truncated || cut, error } });
  }
  process.kill(process.pid, "SIGKILL");
}

let job = -1;
let cpuStart = 0;
let wallStart = 0;
for (;;) {
  // Wakes at once when a program begins.
  const state = Atomics.load(control, STATE);
  Atomics.wait(control, STATE, state, state === RUNNING ? TICK_MS : IDLE_TICK_MS);
  // When the parent dies, the system assigns another one.
  if (process.ppid !== parentPid) process.kill(process.pid, "SIGKILL");
  const limitMb = Atomics.load(control, RSS_MB);
  if (limitMb > 0 && process.memoryUsage.rss() > limitMb * 2 ** 20) end("memory", "error: out of memory");
  if (Atomics.load(control, STATE) !== RUNNING) continue;
  if (Atomics.load(control, JOB) !== job) {
    job = Atomics.load(control, JOB);
    cpuStart = readCpuMs();
    wallStart = performance.now();
  }
  const cpuMs = Atomics.load(control, CPU_MS);
  const wallMs = Atomics.load(control, WALL_MS);
  if (readCpuMs() - cpuStart >= cpuMs) end("cpu", `error: stopped after ${cpuMs / 1000} s of CPU time`);
  if (performance.now() - wallStart >= wallMs) end("timeout", `error: stopped after ${wallMs / 1000} s`);
}
