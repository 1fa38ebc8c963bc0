import type { ToolSchema } from "@cria/core";
import { z } from "zod";
import { BaseTool, type ExecuteOptions, type ToolResult } from "./base-tool.js";
import { JavaScriptSandbox } from "./sandbox/javascript-sandbox.js";
import { PythonSandbox } from "./sandbox/python-sandbox.js";
import type { Sandbox, SandboxOutcome } from "./sandbox/sandbox.js";
import { readSandboxOptions, sandboxConfig } from "./sandbox/sandbox-config.js";
import { defineToolSchema } from "./schema.js";

/** Config of a code tool, in the units of config files. */
export const codeToolConfig = z.object({
  language: z.enum(["python", "javascript"]).optional(),
  /** Alias of `language`, as other frameworks spell it. */
  default_language: z.enum(["python", "javascript"]).optional(),
  timeout_s: z.number().positive().optional(),
  /** Alias of `timeout_s`, as other frameworks spell it. */
  default_timeout: z.number().positive().optional(),
  ...sandboxConfig,
});

const DESCRIPTION = {
  python: "Runs a Python program and gives what it prints and the value of its last expression.",
  javascript: "Runs a JavaScript program and gives what it logs and the value of its last expression.",
} as const;

/**
 * Runs code in a sandbox: Python in Pyodide, or JavaScript in QuickJS. Each call is a separate program; nothing is kept
 * between calls or trajectories. The row's `execute_kwargs.stdin` is Python's input.
 */
export class CodeTool extends BaseTool {
  private readonly sandbox: Sandbox;

  constructor(config: Record<string, unknown> = {}, schema?: ToolSchema) {
    const known = codeToolConfig.parse(config);
    const language = known.language ?? known.default_language ?? "python";
    const code = z.string().describe("The program.");
    super(schema ?? defineToolSchema("code_interpreter", DESCRIPTION[language], z.object({ code })), config);
    const options = readSandboxOptions({ ...known, timeout_s: known.timeout_s ?? known.default_timeout });
    this.sandbox = language === "python" ? new PythonSandbox(options) : new JavaScriptSandbox(options);
  }

  async execute(
    _instanceId: string,
    parameters: Record<string, unknown>,
    { signal, stdin, pauseDeadline }: ExecuteOptions = {},
  ): Promise<ToolResult> {
    const input = typeof stdin === "string" ? stdin : undefined;
    // Waiting for a sandbox is not the program's fault.
    const onStart = pauseDeadline?.();
    const outcome = await this.sandbox.run(String(parameters.code), { signal, stdin: input, onStart });
    return {
      response: { text: describeOutcome(outcome) },
      reward: 0,
      metrics: { code_ok: outcome.status === "ok" ? 1 : 0, [`code_${outcome.status}`]: 1 },
    };
  }

  override dispose(): Promise<void> {
    return this.sandbox.dispose();
  }
}

/** The output and the error as one text for the model. */
export function describeOutcome({ output, truncated, error }: SandboxOutcome): string {
  const parts = [truncated ? `${output}\n(output cut here)` : output.replace(/\n$/, "")];
  if (error !== undefined) parts.push(error);
  const text = parts.filter((part) => part !== "").join("\n");
  return text === "" ? "(no output)" : text;
}
