import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { SandboxLimits, SandboxOutcome, SandboxStatus } from "./sandbox.js";

/** Options of a new child. */
export interface ChildOptions {
  /**
   * The child's program. It reads the settings, reports that it is ready, and then takes and answers one job after the
   * other.
   */
  file: URL;
  /** Files and folders that it may read, in addition to its own folder. */
  readable: readonly string[];
  /** First message to the child. */
  settings: Record<string, unknown>;
  /** Second message, where there is one. */
  data?: Uint8Array;
  /** V8's heap in the child, in MiB; the memory of programs lies outside of it. */
  heapMb: number;
  /** Seconds until it must be ready for a program. */
  startTimeoutS: number;
}

export interface Job {
  code: string;
  stdin: string;
  [setting: string]: unknown;
}

/** The child's watchdog ends programs in time; a child that has not answered this many seconds later is broken. */
const GRACE_S = 10;
const STDERR_CHARS = 2000;

/**
 * One child process that runs programs, one at a time. It has no environment variables, an empty working folder, and may neither
 * read other files, nor write any, nor start processes. It ends with this process, even if that is killed.
 */
export class SandboxChild {
  private readonly process: ChildProcess;
  private readonly channel: Socket;
  private readonly frames: FrameReader;
  private stderr = "";
  /** Takes the next message; null when the child ends. */
  private waiting: ((message: Message | null) => void) | null = null;
  private readonly arrived: Message[] = [];
  private isOver = false;
  /** Settles when the process is gone. */
  readonly exited: Promise<void>;

  constructor(private readonly options: ChildOptions) {
    const { file, readable, settings, data, heapMb } = options;
    const path = fileURLToPath(file);
    const flags = [...permissionFlags([dirname(path), ...readable]), `--max-old-space-size=${heapMb}`, ...STACK_FLAGS];
    this.process = spawn(process.execPath, ["--no-warnings", ...flags, path], {
      cwd: emptyFolder(),
      env: process.platform === "win32" ? { SystemRoot: process.env.SystemRoot } : {},
      stdio: ["ignore", "ignore", "pipe", "pipe"],
      windowsHide: true,
    });
    this.frames = new FrameReader((settings.outputBytes as number) * LONGEST_ESCAPE + 65_536, data === MAKE_SNAPSHOT);
    this.channel = this.process.stdio[3] as Socket;
    this.exited = new Promise((resolve) => {
      const end = () => {
        this.isOver = true;
        this.waiting?.(null);
        resolve();
      };
      this.process.once("close", end);
      this.process.once("error", (error) => {
        this.stderr += error.message;
        end();
      });
    });
    // The child may be gone before it has read.
    this.channel.on("error", () => {});
    this.channel.on("data", (chunk: Buffer) => this.read(chunk));
    this.process.stderr!.on("data", (chunk: Buffer) => {
      this.stderr = (this.stderr + chunk.toString("latin1")).slice(-STDERR_CHARS);
    });
    this.sendJson({ ...settings, parentPid: process.pid });
    if (data !== undefined) this.send(data);
  }

  get pid(): number | undefined {
    return this.process.pid;
  }

  /** @throws Error when it does not get ready for a program in time. */
  async becomeReady(): Promise<void> {
    const message = await this.nextMessage(this.options.startTimeoutS);
    if (message && typeof message === "object" && "ready" in message) return;
    this.kill();
    throw new Error(message === "late" ? `not ready after ${this.options.startTimeoutS} s` : this.describeEnd());
  }

  /**
   * Memory of a new Python, from a child that only makes this snapshot.
   * @throws Error when it ends before.
   */
  async takeSnapshot(): Promise<Buffer> {
    const message = await this.nextMessage(this.options.startTimeoutS);
    this.kill();
    if (Buffer.isBuffer(message)) return message;
    throw new Error(message === "late" ? `no snapshot after ${this.options.startTimeoutS} s` : this.describeEnd());
  }

  /** Runs one program. Never rejects. After any status except `ok` and `error` the child has ended. */
  async run(job: Job, limits: SandboxLimits, signal?: AbortSignal): Promise<SandboxOutcome> {
    this.hold(true);
    const aborted = new Promise<"aborted">((resolve) => {
      if (signal?.aborted) resolve("aborted");
      this.onAbort = () => resolve("aborted");
      signal?.addEventListener("abort", this.onAbort, { once: true });
    });
    this.sendJson({ ...job, cpuMs: toMs(limits.cpuS), wallMs: toMs(limits.timeoutS) });
    const message = await Promise.race([this.nextMessage(limits.timeoutS + GRACE_S), aborted]);
    signal?.removeEventListener("abort", this.onAbort!);
    const outcome = this.readOutcome(message, limits);
    if (outcome.status !== "ok" && outcome.status !== "error") this.kill();
    else this.hold(false);
    return outcome;
  }

  kill(): void {
    // Keeps this process alive while a caller waits for the child's exit.
    if (!this.isOver) this.hold(true);
    this.process.kill("SIGKILL");
  }

  /** Lets the child keep this process alive, or not. */
  hold(isHeld: boolean): void {
    for (const part of [this.process, this.channel, this.process.stderr as Socket]) {
      if (isHeld) part.ref();
      else part.unref();
    }
  }

  private onAbort: (() => void) | undefined;

  private readOutcome(message: Message | "late" | "aborted" | null, limits: SandboxLimits): SandboxOutcome {
    const failed = (status: SandboxStatus, error: string) => ({ status, output: "", truncated: false, error });
    if (message === "aborted") return failed("aborted", "error: stopped");
    if (message === "late") return failed("timeout", `error: stopped after ${limits.timeoutS} s`);
    const answer = message !== null && !Buffer.isBuffer(message) ? message.answer : undefined;
    if (isOutcome(answer)) return answer;
    const isMemory = /out of memory|heap limit|allocation failed/i.test(this.stderr);
    return isMemory ? failed("memory", "error: out of memory") : failed("crashed", "error: the sandbox crashed");
  }

  private describeEnd(): string {
    const { exitCode, signalCode } = this.process;
    const last = this.stderr.trim();
    return `ended with ${signalCode ?? `exit code ${exitCode}`} before it was ready${last && `: ${last}`}`;
  }

  private read(chunk: Buffer): void {
    const messages = this.frames.read(chunk);
    // Not our format: the program controls the child.
    if (messages === null) this.kill();
    for (const message of messages ?? []) {
      if (this.waiting) this.waiting(message);
      else this.arrived.push(message);
    }
  }

  private nextMessage(seconds: number): Promise<Message | "late" | null> {
    const first = this.arrived.shift();
    if (first !== undefined) return Promise.resolve(first);
    if (this.isOver) return Promise.resolve(null);
    return new Promise((resolve) => {
      const settle = (message: Message | "late" | null) => {
        clearTimeout(timer);
        this.waiting = null;
        resolve(message);
      };
      // This process may have been busy for long, with the answer unread in the pipe: read once more before giving up.
      let timer = setTimeout(() => {
        timer = setTimeout(() => settle("late"), 1000);
      }, seconds * 1000);
      this.waiting = settle;
    });
  }

  private sendJson(value: unknown): void {
    this.send(Buffer.from(JSON.stringify(value), "utf8"));
  }

  private send(content: Uint8Array): void {
    const header = Buffer.alloc(4);
    header.writeUInt32LE(content.length);
    this.channel.write(header);
    this.channel.write(content);
  }
}

type Message = Buffer | { ready?: unknown; answer?: unknown };

/** A child's data that asks it to make a snapshot. */
export const MAKE_SNAPSHOT = new Uint8Array(0);
/** Bytes of one byte of text in JSON: "\u0000". */
const LONGEST_ESCAPE = 6;

/** Cuts the child's stream into messages, without trusting any of it. */
class FrameReader {
  private chunks: Buffer[] = [];
  private size = 0;

  constructor(
    private readonly maxBytes: number,
    private readonly isSnapshot: boolean,
  ) {}

  /** The complete messages so far; null when the stream is not in our format. */
  read(chunk: Buffer): Message[] | null {
    this.chunks.push(chunk);
    this.size += chunk.length;
    const messages: Message[] = [];
    while (this.size >= 4) {
      const all = this.chunks.length === 1 || this.chunks[0]!.length >= 4 ? this.chunks[0]! : this.join();
      const length = all.readUInt32LE(0);
      if (length > (this.isSnapshot ? MAX_SNAPSHOT_BYTES : this.maxBytes)) return null;
      if (this.size < 4 + length) break;
      const whole = this.join();
      const content = whole.subarray(4, 4 + length);
      this.chunks = whole.length > 4 + length ? [whole.subarray(4 + length)] : [];
      this.size -= 4 + length;
      const message = this.isSnapshot ? content : parseObject(content);
      if (message === null) return null;
      messages.push(message);
    }
    return messages;
  }

  private join(): Buffer {
    const whole = Buffer.concat(this.chunks);
    this.chunks = [whole];
    return whole;
  }
}

const MAX_SNAPSHOT_BYTES = 2 ** 28;

function parseObject(content: Buffer): Message | null {
  try {
    const value = JSON.parse(content.toString("utf8"));
    return typeof value === "object" && value !== null ? value : null;
  } catch {
    return null;
  }
}

function isOutcome(value: unknown): value is SandboxOutcome {
  const { status, output, truncated, error } = (value ?? {}) as Partial<SandboxOutcome>;
  const isKnown = ["ok", "error", "cpu", "timeout", "memory"].includes(status as string);
  const isError = status === "ok" ? error === undefined : typeof error === "string";
  return isKnown && isError && typeof output === "string" && typeof truncated === "boolean";
}

/** The longest time that the child can hold is 2^31 - 1 ms. */
const toMs = (seconds: number) => Math.min(Math.ceil(seconds * 1000), 2 ** 31 - 1);

/** Deep recursion in interpreters needs more than V8's default of 984 KiB; systems give 8 MiB, Windows less. */
const STACK_FLAGS = process.platform === "win32" ? [] : ["--stack-size=3900"];

/**
 * Flags of Node's permission model, where this Node has it: no writing, no processes, no addons, and reading only of
 * these.
 */
function permissionFlags(readable: readonly string[]): string[] {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  if (major === 20 && minor < 7) return [];
  const flag = major >= 24 ? "--permission" : "--experimental-permission";
  const present = readable.filter((path) => existsSync(path));
  const paths = new Set(present.flatMap((path) => [join(path, "*"), join(realpathSync(path), "*")]));
  // The watchdog is a thread.
  return [flag, "--allow-worker", ...[...paths].map((path) => `--allow-fs-read=${path}`)];
}

let folder: string | undefined;

/** An empty folder, shared by all children of this process. */
function emptyFolder(): string {
  if (folder === undefined) {
    folder = mkdtempSync(join(tmpdir(), "cria-sandbox-"));
    process.once("exit", () => rmSync(folder!, { recursive: true, force: true }));
  }
  return folder;
}
