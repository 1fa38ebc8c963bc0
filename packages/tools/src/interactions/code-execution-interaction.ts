import { type ChatMessage, ConfigError } from "@cria/core";
import { z } from "zod";
import { SandboxExecutor } from "../sandbox/sandbox-executor.js";
import {
  BaseInteraction,
  findLastAnswer,
  type InteractionReply,
  type ReplyKwargs,
  type StartKwargs,
} from "./base-interaction.js";
import { InstanceStore } from "./instance-store.js";
import { readConfig } from "./read-config.js";

/** Runs a program and says what it printed. Whatever goes wrong in the program is an `error`, not a rejection. */
export interface CodeExecutor {
  run(
    code: string,
    options: { language: string; input?: string; timeoutS: number; signal?: AbortSignal },
  ): Promise<{ stdout: string; error?: string }>;
}

const configSchema = z.looseObject({
  language: z.string().default("python"),
  /** Seconds for each test. */
  timeout: z.number().positive().default(5),
  max_attempts: z.int().positive().default(5),
  /** Tests that failed and are shown. */
  max_shown: z.int().positive().default(3),
  /** Characters of what a program printed that are shown. */
  max_output_chars: z.int().positive().default(200),
});

const testSchema = z.array(
  z.union([
    /** An expression to print after the code ran. */
    z.looseObject({ input: z.string(), expected: z.unknown() }),
    /** What the program reads and must write. */
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
}

/**
 * Runs the code of an answer (its last fenced block, else the whole text) against the row's `test_cases` and shows what
 * failed. A turn's score is the share of tests by which it beats all earlier turns; calculated score: the best share.
 */
export class CodeExecutionInteraction extends BaseInteraction {
  private readonly instances: InstanceStore<Instance>;
  private readonly settings: z.infer<typeof configSchema>;
  private readonly executor: CodeExecutor;

  /** @param config may have an `executor` of its own; by default programs run in the sandboxes of the code tool. */
  constructor(config: Record<string, unknown> = {}, name = "code_execution") {
    super(config, name);
    const { executor = new SandboxExecutor(), ...rest } = config;
    this.settings = readConfig(configSchema, rest, name);
    this.instances = new InstanceStore(name);
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
    const outcomes: Outcome[] = [];
    for (const test of instance.tests) outcomes.push(await this.runTest(code, test, kwargs.signal));
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

  private async runTest(code: string, test: Instance["tests"][number], signal?: AbortSignal): Promise<Outcome> {
    const { language, timeout } = this.settings;
    const expression = "input" in test ? String(test.input) : null;
    const print = language === "javascript" ? `console.log(${expression})` : `print(${expression})`;
    const input = expression === null ? String(test.stdin) : undefined;
    const result = await this.executor.run(expression === null ? code : `${code}\n\n${print}\n`, {
      language,
      input,
      timeoutS: timeout,
      signal,
    });
    const label = expression ?? `input ${JSON.stringify(this.shorten(input!))}`;
    if (result.error !== undefined) return { label, problem: this.shorten(result.error) };
    const expected = String(test.expected).trim();
    const received = result.stdout.trim();
    return { label, problem: received === expected ? null : `expected ${expected}, got ${this.shorten(received)}` };
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

/** The last fenced block, its language left out; the whole text when there is none. */
function extractCode(text: string): string {
  const parts = text.split("```");
  if (parts.length < 2) return text.trim();
  // Blocks stand at odd places; an unterminated last one too.
  const block = parts[parts.length % 2 === 0 ? parts.length - 1 : parts.length - 2]!;
  return block.replace(/^[\w+-]*[ \t]*\r?\n/, "").trim();
}
