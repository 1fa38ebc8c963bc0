import { type ChatMessage, ConfigError, findLastAnswer } from "@cria/core";
import { z } from "zod";
import { InstanceStore } from "../instance-store.js";
import { readSandboxOptions, sandboxConfig } from "../sandbox/sandbox-config.js";
import { SandboxExecutor, sandboxLanguages } from "../sandbox/sandbox-executor.js";
import { BaseInteraction, type InteractionReply, type ReplyKwargs, type StartKwargs } from "./base-interaction.js";
import { readConfig } from "./read-config.js";

/**
 * Runs a program and returns its output. An error in the program resolves with `error`, never rejects; `timedOut` says
 * that the time limit stopped it. Several programs may run at once.
 */
export interface CodeExecutor {
  run(
    code: string,
    options: { language: string; input?: string; timeoutS: number; signal?: AbortSignal },
  ): Promise<{ stdout: string; error?: string; timedOut?: boolean }>;
}

const configSchema = z.strictObject({
  language: z.string().default("python"),
  /** Seconds for each test, from when a sandbox takes it. */
  timeout: z.number().positive().default(5),
  ...sandboxConfig,
  max_attempts: z.int().positive().default(5),
  /** Failed tests that the reply shows. */
  max_shown: z.int().positive().default(3),
  /** Characters of a program's output that the reply shows. */
  max_output_chars: z.int().positive().default(200),
});

const testSchema = z.array(
  z.union([
    /** An expression to print after the code ran. */
    z.looseObject({ input: z.string(), expected: z.unknown() }),
    /** The program's input, and its expected output. */
    z.looseObject({ stdin: z.string(), expected: z.unknown() }),
  ]),
);

interface Instance {
  tests: z.infer<typeof testSchema>;
  attempts: number;
  best: number;
}

interface Outcome {
  label: string;
  problem: string | null;
  timedOut: boolean;
}

/**
 * Runs the code of an answer (its last fenced block, else the whole text) against the row's `test_cases` and shows the
 * failed ones. A turn's score is the share of tests by which it beats all earlier turns; calculated score: the best
 * share.
 *
 * Tests run at once, as many as there are sandboxes. They count as if they ran in order: the first one that exceeds the
 * limit fails, and so do all after it. A reply therefore takes at most `timeout` for each test, plus the wait for
 * sandboxes.
 */
export class CodeExecutionInteraction extends BaseInteraction {
  private readonly instances: InstanceStore<Instance>;
  private readonly settings: z.infer<typeof configSchema>;
  private readonly executor: CodeExecutor;
  /** The executor that this interaction made and disposes of; undefined when it was given one. */
  private readonly ownExecutor: SandboxExecutor | undefined;

  /** @param config may have an `executor`; by default programs run in the sandboxes of the code tool. */
  constructor(config: Record<string, unknown> = {}, name = "code_execution") {
    super(config, name);
    const { executor, ...rest } = config;
    this.settings = readConfig(configSchema, rest, name);
    this.instances = new InstanceStore(name);
    if (executor === undefined) {
      const { language, timeout, cpu_s = timeout } = this.settings;
      readConfig(z.object({ language: z.enum(sandboxLanguages) }), { language }, name);
      this.ownExecutor = new SandboxExecutor(readSandboxOptions({ ...this.settings, cpu_s }));
      this.executor = this.ownExecutor;
      return;
    }
    if (typeof (executor as CodeExecutor | null)?.run !== "function") {
      throw new ConfigError("has a wrong value", {
        code: "config/bad-value",
        subject: `config of ${name}.executor`,
        expected: "an object with run(code, options)",
        received: typeof executor,
      });
    }
    this.executor = executor as CodeExecutor;
  }

  async startInteraction(instanceId: string, kwargs: StartKwargs = {}): Promise<void> {
    const tests = readConfig(
      testSchema,
      (kwargs.test_cases ?? kwargs.ground_truth) as never,
      `${this.name}.test_cases`,
    );
    this.instances.start(instanceId, { tests, attempts: 0, best: 0 });
  }

  async generateResponse(
    instanceId: string,
    messages: readonly ChatMessage[],
    kwargs: ReplyKwargs = {},
  ): Promise<InteractionReply> {
    const instance = this.instances.get(instanceId);
    instance.attempts++;
    const code = extractCode(findLastAnswer(messages));
    // The tests have their limits; waiting for a sandbox must not fail the conversation.
    kwargs.pauseDeadline?.();
    const outcomes = await this.runTests(code, instance.tests, kwargs.signal);
    const failed = outcomes.filter((outcome) => outcome.problem !== null);
    const passed = outcomes.length - failed.length;
    const share = outcomes.length > 0 ? passed / outcomes.length : 0;
    const score = Math.max(0, share - instance.best);
    instance.best = Math.max(instance.best, share);
    return {
      shouldTerminate: (outcomes.length > 0 && failed.length === 0) || instance.attempts >= this.settings.max_attempts,
      content: failed.length === 0 ? "All tests passed." : this.describe(failed, passed, outcomes.length),
      score,
      data: { tests_passed: passed, tests_run: outcomes.length },
    };
  }

  override async calculateScore(instanceId: string): Promise<number> {
    return this.instances.get(instanceId).best;
  }

  async finalizeInteraction(instanceId: string): Promise<void> {
    this.instances.end(instanceId);
  }

  override async dispose(): Promise<void> {
    await this.ownExecutor?.dispose();
  }

  private async runTests(code: string, tests: Instance["tests"], signal?: AbortSignal): Promise<Outcome[]> {
    const controllers = tests.map(() => new AbortController());
    const abort = () => {
      for (const controller of controllers) controller.abort();
    };
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort, { once: true });
    try {
      const outcomes = await Promise.all(
        tests.map(async (test, i) => {
          const outcome = await this.runTest(code, test, controllers[i]!.signal);
          if (outcome.timedOut) for (const later of controllers.slice(i + 1)) later.abort();
          return outcome;
        }),
      );
      const last = outcomes.findIndex(({ timedOut }) => timedOut);
      const notRun = (outcome: Outcome) => ({ ...outcome, problem: "not run, since a test before took too long" });
      return last < 0 ? outcomes : outcomes.map((outcome, i) => (i > last ? notRun(outcome) : outcome));
    } finally {
      signal?.removeEventListener("abort", abort);
    }
  }

  private async runTest(code: string, test: Instance["tests"][number], signal: AbortSignal): Promise<Outcome> {
    const { language, timeout } = this.settings;
    const expression = "input" in test ? String(test.input) : null;
    const isJavaScript = language === "javascript" || language === "js";
    const print = isJavaScript ? `console.log(${expression})` : `print(${expression})`;
    const input = expression === null ? String(test.stdin) : undefined;
    const result = await this.executor.run(expression === null ? code : `${code}\n\n${print}\n`, {
      language,
      input,
      timeoutS: timeout,
      signal,
    });
    const label = expression ?? `input ${JSON.stringify(this.shorten(input!))}`;
    if (result.error !== undefined) {
      return { label, problem: this.shorten(result.error), timedOut: result.timedOut === true };
    }
    const expected = String(test.expected).trim();
    const received = result.stdout.trim();
    const problem = received === expected ? null : `expected ${expected}, got ${this.shorten(received)}`;
    return { label, problem, timedOut: false };
  }

  private describe(failed: readonly Outcome[], passed: number, total: number): string {
    const shown = failed.slice(0, this.settings.max_shown).map(({ label, problem }) => `- ${label}: ${problem}`);
    const more = failed.length - shown.length;
    return [
      `${passed} of ${total} tests passed.`,
      ...shown,
      ...(more > 0 ? [`- and ${more} more`] : []),
      "Correct the code and give all of it again.",
    ].join("\n");
  }

  private shorten(text: string): string {
    const limit = this.settings.max_output_chars;
    return text.length > limit ? `${text.slice(0, limit)}...` : text;
  }
}

/** The last fenced block without its language; the whole text when there is none. */
function extractCode(text: string): string {
  const parts = text.split("```");
  if (parts.length < 2) return text.trim();
  // The split leaves blocks at odd indices, an unterminated last one too.
  const block = parts[parts.length % 2 === 0 ? parts.length - 1 : parts.length - 2]!;
  return block.replace(/^[\w+-]*[ \t]*\r?\n/, "").trim();
}
