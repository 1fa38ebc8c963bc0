import { type ChildProcess, spawn, spawnSync } from "node:child_process";

export interface ProgramOptions {
  /** The program and its arguments; no shell is involved. */
  command: readonly string[];
  cwd: string;
  env: NodeJS.ProcessEnv;
  /** Text for the program's standard input. */
  input: string;
  /** Aborting it kills the program and all of its child processes. */
  signal: AbortSignal;
}

export interface ProgramEnd {
  /** The last `longest` characters of each stream. */
  stdout: string;
  stderr: string;
  /** Exit status, or the name of the signal that ended the program. */
  status: number | string;
}

/** Number of characters kept per stream. */
const longest = 64 * 1024;

/**
 * Runs a program in its own process group. The whole group is killed at the end, so that no child process is left
 * behind.
 * @throws the signal's reason; the system's error when the program cannot be started.
 */
export async function runProgram({ command, cwd, env, input, signal }: ProgramOptions): Promise<ProgramEnd> {
  signal.throwIfAborted();
  const [program, ...args] = command;
  const child = spawn(program!, args, { cwd, env, detached: true, stdio: ["pipe", "pipe", "pipe"] });
  const killAll = () => killGroup(child);
  signal.addEventListener("abort", killAll, { once: true });
  const stdout = keepEnd(child.stdout);
  const stderr = keepEnd(child.stderr);
  try {
    const status = await new Promise<number | string>((resolve, reject) => {
      child.once("error", reject);
      // Not "close": a child that is still running may hold the streams open.
      child.once("exit", (code, ended) => resolve(code ?? ended ?? "unknown"));
      // A program may exit without reading its input.
      child.stdin.on("error", () => undefined);
      child.stdin.end(input);
    });
    signal.throwIfAborted();
    killAll();
    await Promise.all([stdout.ended, stderr.ended]);
    return { stdout: stdout.read(), stderr: stderr.read(), status };
  } finally {
    signal.removeEventListener("abort", killAll);
    killAll();
  }
}

function killGroup({ pid, exitCode }: ChildProcess): void {
  if (pid === undefined) return;
  if (process.platform === "win32") {
    // There are no groups: the system finds the children as long as their parent runs.
    if (exitCode === null) spawnSync("taskkill", ["/pid", String(pid), "/t", "/f"], { stdio: "ignore" });
    return;
  }
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The process group has already ended.
  }
}

function keepEnd(stream: NodeJS.ReadableStream): { read: () => string; ended: Promise<void> } {
  let text = "";
  stream.setEncoding("utf8");
  stream.on("data", (piece: string) => {
    text = (text + piece).slice(-longest);
  });
  const ended = new Promise<void>((resolve) => {
    stream.once("close", resolve);
    stream.once("error", () => resolve());
  });
  return { read: () => text, ended };
}
