import { type ChatMessage, ConfigError, contentText, type Trajectory } from "@cria/core";
import { type ChecksOf, checkOptions, isObject, optionChecks } from "@cria/core/internal";
import { FakeEngine } from "@cria/core/testing";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { getToolFormat } from "@cria/tools";
import { Policy } from "../policy/policy.js";
import { rollOut } from "../step/roll-out.js";
import { Task } from "../task/task.js";

/** An assistant's turn: a text, a tool call (`callTool`), or several of these, joined by line breaks. */
export type ScriptedAnswer = string | readonly string[];

/** A tool call, as a scripted model writes it: `playTask(task, [callTool("square", { x: 3 }), "#### 9"])`. */
export function callTool(name: string, input: Readonly<Record<string, unknown>> = {}): string {
  return `<tool_call>\n${JSON.stringify({ name, arguments: input })}\n</tool_call>`;
}

/** Input of a script when the model must speak. */
export interface ScriptedTurn {
  /** Turns that the model has had in this conversation, from 0. */
  turn: number;
  /** The conversation so far, as a chat template prints it. */
  text: string;
}

/** All answers, in their order, or a function that gives each. */
export type Script = readonly ScriptedAnswer[] | ((turn: ScriptedTurn) => ScriptedAnswer);

export interface PlayOptions<Row extends object> {
  /** Index of one of the task's rows; or a row of your own. Default 0. */
  row?: number | Row;
  /** Ends the conversation; `playTask` then throws the signal's reason. */
  signal?: AbortSignal;
}

/** A tool call of the model, and its answer. */
export interface PlayedCall {
  name: string;
  /** As the model wrote them. */
  arguments: Record<string, unknown>;
  /** The tool's answer, as the model read it; null if the conversation ended before that. */
  answer: string | null;
}

/** A conversation of a scripted model, judged as in training. */
export interface Played {
  /** Reward for training: the score, plus the step rewards of calls and the scores of turns. */
  reward: number;
  /** Result of the task's reward; without one, the score by its tools or its interaction. */
  score: number;
  /** Step rewards of the calls that had one, in order. */
  stepRewards: readonly number[];
  /** Prompt, answers, and what tools and users said. */
  messages: readonly ChatMessage[];
  calls: readonly PlayedCall[];
  /** Answers of the script that were not asked for. Always 0 for a function. */
  unused: number;
  /** All that a training would have of it. */
  trajectory: Trajectory;
}

const playChecks: ChecksOf<Required<PlayOptions<object>>> = {
  row: [(value) => typeof value === "number" || isObject(value), "the index of a row, or a row"],
  signal: optionChecks.signal,
};

/** Tokens of a scripted model are bytes: the limits of a task, which count a model's tokens, say nothing of them. */
const UNLIMITED = 1_000_000;

/**
 * Runs one conversation of a task with a scripted model: its tools run, its users answer, its reward judges, as in
 * training, without loading a model. The task's token limits do not apply; `maxTurns` does. Calls are those of
 * `callTool`, whatever the task's `toolFormat`.
 * @throws ConfigError "testing/script-ended" when the conversation needs more answers than the script has, or for an
 * unknown or wrong option; ToolError when it failed or could not be judged, with the thrown error as its cause.
 */
export async function playTask<Row extends object>(
  task: Task<Row>,
  script: Script,
  options: PlayOptions<Row> = {},
): Promise<Played> {
  checkOptions("playTask", options, playChecks);
  const { row = 0, signal } = options;
  const { definition } = task;
  const own = { maxPromptLength: UNLIMITED, maxResponseLength: UNLIMITED, toolFormat: undefined };
  const played = new Task<Row>({ ...definition, ...own, ...(typeof row === "object" ? { rows: [row] } : {}) });
  const rows = await played.load();
  const chosen = rows[typeof row === "number" ? row : 0];
  if (chosen === undefined) throw refuseRow(row, rows.length);
  const reader = new ScriptReader(script);
  const policy = scriptPolicy(reader);
  try {
    const { trajectories } = await rollOut(policy, played, [{ ...chosen, samples: 1 }], { name: "playTask", signal });
    return describe(trajectories[0]!, reader.unused);
  } catch (error) {
    throw reader.ended ?? error;
  } finally {
    await played.dispose();
    await policy.dispose();
  }
}

function scriptPolicy(reader: ScriptReader): Policy {
  const engine = new FakeEngine({ reply: (turn) => reader.next(turn), contextSize: 4 * UNLIMITED });
  return new Policy({ engine, tokenizer: DeltaTokenizer.forModel(engine), reference: engine, seed: 0 });
}

/** Gives the answers of a script, one after the other. */
class ScriptReader {
  private asked = 0;
  /** That the script was too short; null: it was not. */
  ended: ConfigError | null = null;

  constructor(private readonly script: Script) {}

  get unused(): number {
    return typeof this.script === "function" ? 0 : this.script.length - this.asked;
  }

  next({ turn, text }: ScriptedTurn): string {
    const { script } = this;
    const answer = typeof script === "function" ? script({ turn, text }) : script[this.asked];
    if (answer === undefined) throw this.refuse(text);
    this.asked++;
    return [answer].flat().join("\n");
  }

  private refuse(text: string): ConfigError {
    this.ended = new ConfigError("has no further answer", {
      code: "testing/script-ended",
      subject: "playTask: script",
      expected: `an answer for turn ${this.asked + 1} of the model`,
      received: `${this.asked} answers, and a conversation that goes on: ${JSON.stringify(text.slice(-200))}`,
      remedy: "add the model's next answer, or let the task end earlier (maxTurns)",
    });
    return this.ended;
  }
}

function describe(trajectory: Trajectory, unused: number): Played {
  const { reward, rewards, messages } = trajectory;
  const stepRewards = trajectory.toolRewards.map(({ value }) => value);
  // One that failed, or that could not be judged, was thrown.
  const score = rewards.score!;
  return { reward, score, stepRewards, messages, calls: listCalls(messages), unused, trajectory };
}

/** The calls that the model wrote, each with the message of a tool that answers it. */
function listCalls(messages: readonly ChatMessage[]): PlayedCall[] {
  return messages.flatMap(({ role, content }, at) => {
    if (role !== "assistant") return [];
    const { calls } = getToolFormat("hermes").parse(contentText(content), []);
    return calls.map(({ name, arguments: given }, i) => {
      const answer = messages[at + 1 + i];
      return { name, arguments: given, answer: answer?.role === "tool" ? contentText(answer.content) : null };
    });
  });
}

function refuseRow(row: unknown, count: number): ConfigError {
  return new ConfigError("is not there", {
    code: "config/bad-value",
    subject: "playTask: row",
    expected: `a whole number below ${count}, or a row`,
    received: String(row),
  });
}
