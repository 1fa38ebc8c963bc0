/**
 * Runs hostile programs one after the other and reports each one's violations: its ending, its output, the size of its
 * text, the memory that its process took as seen from outside, and whether the next program was right. Also runs a
 * batch of programs at once, some of them endless.
 */
import { readFileSync } from "node:fs";

/** Limits that the programs are written for; `cpuS` is for programs that it may stop. */
const common = { cpuS: 1, timeoutS: 20, outputBytes: 2000, workers: 1 };
/** Time for programs that end by themselves, or by another limit: enough for a slow, busy machine. */
const PATIENT = { cpuS: 30, timeoutS: 120 };
export const hostileLimits = {
  javascript: { ...common, memoryMb: 32 },
  python: { ...common, memoryMb: 96, diskMb: 8 },
};
/** MiB that a program may add to its process: its memory, its files, and the sandbox's allowance for garbage. */
const WATCHED_MB = { javascript: 32 + 96, python: 96 + 2 * 8 + 96 };
/** MiB beyond that, which a program may take in the 10 ms between two checks of its watchdog, on a busy machine. */
const OVERSHOOT_MB = 100;

/** A process's peak resident memory in MiB, from Linux; null elsewhere and when the process is gone. */
function readPeakMb(pid) {
  try {
    const [, kib] = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return kib === undefined ? null : Number(kib) / 1024;
  } catch {
    return null;
  }
}

/**
 * Runs programs that a limit of CPU time may stop on one pool, all others on another one with ample time. The clock
 * stops only programs that wait for it.
 * @param Sandbox the class of the programs' sandbox
 */
export async function runHostile(programs, Sandbox, onResult = () => {}) {
  /** @type {Record<string, any[]>} */
  const pools = { clock: [], cpu: [], other: [] };
  for (const program of programs) {
    const ends = program.ends.split("|");
    pools[ends.includes("timeout") ? "clock" : ends.includes("cpu") ? "cpu" : "other"].push(program);
  }
  const times = { clock: {}, cpu: { timeoutS: PATIENT.timeoutS }, other: PATIENT };
  const problems = [];
  for (const [name, members] of Object.entries(pools))
    if (members.length > 0) problems.push(...(await runOnPool(members, Sandbox, times[name], onResult)));
  return problems;
}

async function runOnPool(programs, Sandbox, time, onResult) {
  const sandbox = new Sandbox({ ...hostileLimits[programs[0].language], ...time });
  let peakMb = 0;
  const look = () => {
    for (const pid of sandbox.pids) peakMb = Math.max(peakMb, readPeakMb(pid) ?? 0);
  };
  await sandbox.run("1");
  look();
  // The interpreter without a program: a new process has held this much.
  const baseMb = peakMb;
  const problems = [];
  for (const { name, language, code, ends, says } of programs) {
    peakMb = 0;
    const started = performance.now();
    const timer = setInterval(look, 5);
    const { status, output, error = "" } = await sandbox.run(code);
    look();
    clearInterval(timer);
    const seconds = (performance.now() - started) / 1000;
    const next = await sandbox.run("40 + 2");
    const text = `${output}\n${error}`;
    const found = [];
    if (!ends.split("|").includes(status)) found.push(`ended with ${status} (${error.slice(0, 300)})`);
    if (says && !says.test(text)) found.push(`said ${JSON.stringify(text.slice(0, 300))}`);
    // The texts of errors that the sandbox makes itself are short, and not counted.
    const bytes = Buffer.byteLength(output) + (status === "error" ? Buffer.byteLength(error) : 0);
    if (bytes > common.outputBytes) found.push(`gave ${bytes} bytes`);
    const mostMb = baseMb + WATCHED_MB[language] + OVERSHOOT_MB;
    if (peakMb > mostMb) found.push(`took ${Math.round(peakMb)} MiB of ${Math.round(mostMb)}`);
    if (next.status !== "ok" || next.output !== "42\n") found.push(`the next program gave ${JSON.stringify(next)}`);
    const problem = found.join("; ");
    if (problem) problems.push(`${language}, ${name}: ${problem}`);
    onResult({ name, problem, status, seconds, peakMb: Math.round(peakMb), baseMb: Math.round(baseMb) });
  }
  await sandbox.dispose();
  return problems;
}

const ENDLESS = { javascript: "for (;;);", python: "while True: pass" };

/**
 * Starts programs at once, an eighth of them endless, without any running process.
 * @param count how many; default 64
 * @returns {Promise<{ right: number, stopped: number, wrong: string[], slowestS: number }>}
 */
export async function runBatch(language, sandbox, count = 64) {
  const started = performance.now();
  const result = { right: 0, stopped: 0, wrong: /** @type {string[]} */ ([]), slowestS: 0 };
  await Promise.all(
    Array.from({ length: count }, async (_, i) => {
      const isEndless = i % 8 === 3;
      const outcome = await sandbox.run(isEndless ? ENDLESS[language] : `${i} * ${i}`);
      result.slowestS = Math.max(result.slowestS, (performance.now() - started) / 1000);
      if (isEndless && (outcome.status === "cpu" || outcome.status === "timeout")) result.stopped++;
      else if (!isEndless && outcome.output === `${i * i}\n`) result.right++;
      else result.wrong.push(`${i}: ${JSON.stringify(outcome)}`);
    }),
  );
  return result;
}
