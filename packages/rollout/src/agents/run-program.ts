import { type ChildProcess, spawn } from "node:child_process";

export interface ProgramOptions {
  /** The program and its arguments; no shell reads them. */
  command: readonly string[];
  cwd: string;
  env: NodeJS.ProcessEnv;
  /** What it reads from its standard input. */
  input: string;
  /** Kills the program and all that it started. */
  signal: AbortSignal;
}

export interface ProgramEnd {
  /** What it wrote last, of each stream at most `longest` characters. */
  stdout: string;
  stderr: string;
  /** Its exit status, or the signal that ended it. */
  status: number | string;
}

/** Characters of a stream that are kept. */
const longest = 64 * 1024;

/**
 * Runs a program in a process group of its own, which is killed whole at the end, whatever the program left behind.
 * @throws the signal's reason; what the system says of a program that it cannot start.
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
      // Not "close": what it left running may hold its streams open.
      child.once("exit", (code, ended) => resolve(code ?? ended ?? "unknown"));
      // It need not read its input.
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

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // All of it has ended.
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
