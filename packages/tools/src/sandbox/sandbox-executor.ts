import { JavaScriptSandbox } from "./javascript-sandbox.js";
import { PythonSandbox, type PythonSandboxOptions } from "./python-sandbox.js";
import type { RunOptions, Sandbox } from "./sandbox.js";

const makers: Record<string, (options: PythonSandboxOptions) => Sandbox> = {
  python: (options) => new PythonSandbox(options),
  py: (options) => new PythonSandbox(options),
  javascript: (options) => new JavaScriptSandbox(options),
  js: (options) => new JavaScriptSandbox(options),
};

/** Languages of `SandboxExecutor`. */
export const sandboxLanguages: readonly string[] = Object.keys(makers);

export interface ExecutorOptions extends Pick<RunOptions, "signal"> {
  language: string;
  input?: string;
  /** Wall time in seconds, from when a sandbox takes the program. */
  timeoutS: number;
}

/** Runs programs of several languages, each in a sandbox that is made at the first program of its language. */
export class SandboxExecutor {
  private readonly sandboxes = new Map<string, Sandbox>();

  constructor(private readonly options: PythonSandboxOptions = {}) {}

  /**
   * The program's output. Errors in it, aborts and an unknown language resolve with `error`; `timedOut` says that the
   * time limit stopped it.
   */
  async run(code: string, options: ExecutorOptions): Promise<{ stdout: string; error?: string; timedOut?: boolean }> {
    const { language, input, timeoutS, signal } = options;
    const make = Object.hasOwn(makers, language) ? makers[language] : undefined;
    if (!make) return { stdout: "", error: `error: no sandbox for ${language}` };
    const sandbox = this.sandboxes.get(language) ?? make(this.options);
    this.sandboxes.set(language, sandbox);
    const { status, output, error } = await sandbox.run(code, { stdin: input, timeoutS, signal });
    if (error === undefined) return { stdout: output };
    return { stdout: output, error, ...(status === "cpu" || status === "timeout" ? { timedOut: true } : {}) };
  }

  async dispose(): Promise<void> {
    await Promise.all([...this.sandboxes.values()].map((sandbox) => sandbox.dispose()));
  }
}
