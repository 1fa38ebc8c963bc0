/**
 * The loop of a sandbox's child process: it prepares an interpreter, reports that it is ready, runs a program, answers,
 * and begins again. One program at a time; the process ends with its parent.
 */
import process from "node:process";
import v8 from "node:v8";
import vm from "node:vm";
import { Worker } from "node:worker_threads";
import { ANSWERED, CPU_MS, FIELDS, IDLE, JOB, RSS_MB, RUNNING, STATE, WALL_MS } from "./control.mjs";
import { cutText } from "./cut-text.mjs";
import { readJson, writeJson } from "./frames.mjs";
import { lockRealm } from "./lock-realm.mjs";
import { clearOutput, makeOutputBuffer, readOutput, writeOutput } from "./output-buffer.mjs";

/** MiB that may stay in use after a program; a child that keeps more is replaced. */
const LEFTOVER_MB = 96;
const MIB = 2 ** 20;

/**
 * @typedef {{ code: string, stdin: string, cpuMs: number, wallMs: number }} Job
 * @typedef {(job: Job, write: (text: string) => number) => string | undefined} RunProgram runs to the end and gives the
 * program's error; `write` gives the bytes that are left for output.
 */

/**
 * Does not return. `prepare` makes the interpreter of the next program, unaffected by earlier ones.
 * @param {{ outputBytes: number, watchedMb: number, parentPid: number, watchdog: string }} settings `watchedMb`: memory
 * that a program may add to the process
 * @param {() => Promise<RunProgram>} prepare
 */
export async function servePrograms({ outputBytes, watchedMb, parentPid, watchdog }, prepare) {
  const output = makeOutputBuffer(outputBytes);
  const controlBuffer = new SharedArrayBuffer(FIELDS * 4);
  const control = new Int32Array(controlBuffer);
  const collectGarbage = takeGarbageCollector();
  const watching = new Worker(new URL(watchdog), {
    workerData: { controlBuffer, output, parentPid },
    stdout: true,
    stderr: true,
  });
  await new Promise((resolve, reject) => watching.once("online", resolve).once("error", reject));
  watching.on("error", () => process.kill(process.pid, "SIGKILL"));
  const { kill, pid, memoryUsage } = process;
  const leave = () => kill(pid, "SIGKILL");
  lockRealm();

  let base = 0;
  for (;;) {
    const run = await prepare();
    if (base === 0) {
      collectGarbage();
      base = memoryUsage.rss() / MIB;
      Atomics.store(control, RSS_MB, Math.ceil(base + LEFTOVER_MB + watchedMb));
    } else if (memoryUsage.rss() / MIB > base + LEFTOVER_MB / 2) {
      collectGarbage();
      if (memoryUsage.rss() / MIB > base + LEFTOVER_MB) leave();
    }
    writeJson({ ready: true });
    const job = readJson();
    if (job === null) leave();

    clearOutput(output);
    Atomics.store(control, CPU_MS, job.cpuMs);
    Atomics.store(control, WALL_MS, job.wallMs);
    Atomics.add(control, JOB, 1);
    Atomics.store(control, STATE, RUNNING);
    Atomics.notify(control, STATE);
    let error;
    try {
      error = run(job, (text) => writeOutput(output, text));
    } catch {
      // The interpreter could not report its error; most often it had no memory left.
      error = "error: the interpreter ended";
    }
    // The watchdog has answered, and is about to kill this process.
    if (Atomics.compareExchange(control, STATE, RUNNING, ANSWERED) !== RUNNING) Atomics.wait(control, STATE, ANSWERED);
    writeJson({ answer: makeAnswer(output, error, outputBytes) });
    Atomics.store(control, STATE, IDLE);
  }
}

/** Output and error share the limit; at least half of it is for the error. */
function makeAnswer(output, error, outputBytes) {
  const { text, truncated } = readOutput(output);
  if (error === undefined) return { status: "ok", output: text, truncated };
  const used = Buffer.byteLength(text);
  const errorText = cutText(error, Math.max(outputBytes - used, Math.floor(outputBytes / 2)));
  const left = outputBytes - Buffer.byteLength(errorText);
  const kept =
    used > left
      ? Buffer.from(text)
          .subarray(0, left)
          .toString()
          .replace(/\uFFFD+$/, "")
      : text;
  return { status: "error", output: kept, truncated: truncated || kept.length < text.length, error: errorText };
}

/** V8's collector, without giving it to the realms of programs. */
function takeGarbageCollector() {
  v8.setFlagsFromString("--expose-gc");
  const collect = vm.runInNewContext("gc");
  v8.setFlagsFromString("--no-expose-gc");
  return collect;
}
