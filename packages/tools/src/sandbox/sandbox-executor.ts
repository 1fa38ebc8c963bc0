import { JavaScriptSandbox } from "./javascript-sandbox.js";
import { PythonSandbox } from "./python-sandbox.js";
import type { Sandbox, SandboxOptions } from "./sandbox.js";

const makers: Record<string, (options: SandboxOptions) => Sandbox> = {
  python: (options) => new PythonSandbox(options),
  py: (options) => new PythonSandbox(options),
  javascript: (options) => new JavaScriptSandbox(options),
  js: (options) => new JavaScriptSandbox(options),
};

/** Runs programs of several languages, each in a sandbox that is made when its language first comes up. */
export class SandboxExecutor {
  private readonly sandboxes = new Map<string, Sandbox>();

  constructor(private readonly options: SandboxOptions = {}) {}

  /** What the program printed; whatever goes wrong in it is an `error`. Aborts and an unknown language are errors too. */
  async run(
    code: string,
    options: { language: string; input?: string; timeoutS: number; signal?: AbortSignal },
  ): Promise<{ stdout: string; error?: string }> {
    const { language, input, timeoutS, signal } = options;
    const make = Object.hasOwn(makers, language) ? makers[language] : undefined;
    if (!make) return { stdout: "", error: `error: no sandbox for ${language}` };
    const sandbox = this.sandboxes.get(language) ?? make(this.options);
    this.sandboxes.set(language, sandbox);
    const { output, error } = await sandbox.run(code, { stdin: input, timeoutS, signal });
    return { stdout: output, ...(error === undefined ? {} : { error }) };
  }

  async dispose(): Promise<void> {
    await Promise.all([...this.sandboxes.values()].map((sandbox) => sandbox.dispose()));
  }
}
