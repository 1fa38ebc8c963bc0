import { type ChatMessage, ConfigError, type FinishReason } from "@cria/core";
import { DataLoader, type DatasetRow, loadDataset, type RewardResult } from "@cria/rollout";
import type { BaseInteraction, ToolListItem } from "@cria/tools";
import type { Policy } from "../policy/policy.js";
import type { Environment } from "./environment.js";
import { type OpenedEnvironment, openTaskEnvironment } from "./open-environment.js";
import { toDatasetRow } from "./task-rows.js";

/** A function of an argument. As a method's, its argument may be of a narrower type where any task will do. */
type Of<Argument, Result> = { of(argument: Argument): Result }["of"];

/** A conversation that is over, as a task's reward sees it. */
export interface Episode<Row> {
  /** What the model answered in the end: what follows the last "####" of its last message, else that whole message. */
  answer: string;
  /** All that was sampled. */
  text: string;
  row: Row;
  /** The whole conversation, the prompt included. */
  messages: readonly ChatMessage[];
  /** Assistant turns plus the turns of tools and users after the prompt. */
  turns: number;
  finishReason: FinishReason;
  /** Sum over the tools of their rewards; null when no tool has one. */
  toolScore: number | null;
  /** The interaction's score; null when there was none. */
  interactionScore: number | null;
}

/**
 * Judges an episode: a number, true or false for 1 or 0, or `{ score, ...extra }`, whose numbers become metrics. One that throws
 * has not judged it: the conversation then failed and teaches nothing.
 */
export type TaskReward<Row> = Of<Episode<Row>, RewardResult | boolean | Promise<RewardResult | boolean>>;

export interface TaskDefinition<Row extends object = Record<string, unknown>> {
  /**
   * What is asked: values of your own, rows of `loadDataset`, or files of rows (Parquet, JSONL, JSON). A row's prompt is what
   * `prompt` says of it, else its `prompt` or `messages` (a text or messages) or its `question`.
   */
  rows: readonly Row[] | string | readonly string[];
  prompt?: Of<Row, string | readonly ChatMessage[]>;
  /** Stands before each prompt that has no system message. */
  system?: string;
  /** `tool()`s, tools of the AI SDK, MCP servers (`mcpServer`), or a YAML file of tools. Default: none. */
  tools?: readonly ToolListItem[] | string;
  /** Answers of a user, or a YAML file of interactions. Default: none. */
  interaction?: BaseInteraction | string;
  /** Default: tools, the interaction, or the row's `data_source` judge. By path: "./reward.ts#score", as a config has it. */
  reward?: TaskReward<Row> | string;
  /** What dumps show as the right answer, and interactions may use. Default: the row's `truth` or `answer`. */
  truth?: Of<Row, unknown>;
  /** Of rows that have no `data_source`; metrics are kept by it. Default "task". */
  name?: string;
  /** How the model writes tool calls; default: as its chat template prints them. */
  toolFormat?: string;
  /** Most turns of the model in a conversation; default: as many as its tokens allow. */
  maxTurns?: number;
  /** Most tokens of a prompt; default 512. */
  maxPromptLength?: number;
  /** Most tokens after the prompt, over all turns; default 512. */
  maxResponseLength?: number;
}

export interface BatchesOptions {
  /** Passes over the rows; default 1. */
  epochs?: number;
  /** Batches in all, in place of `epochs`. */
  steps?: number;
  /** Whether each pass has an order of its own; default true. */
  shuffle?: boolean;
  /** Of that order; default 0. */
  seed?: number;
}

/** Rows, and the environment that the policy answers them in. Make it with `defineTask`. */
export class Task<Row extends object = Record<string, unknown>> {
  private loaded: Promise<DatasetRow[]> | null = null;
  private opened: { policy: Policy; environment: Promise<OpenedEnvironment> } | null = null;

  constructor(readonly definition: TaskDefinition<Row>) {
    const { rows } = definition;
    if (rows.length > 0) return;
    throw new ConfigError("has no rows", {
      code: "config/no-rows",
      subject: "defineTask: rows",
      expected: "at least one row, or a file of rows",
      received: JSON.stringify(rows),
    });
  }

  /** The same task over other rows, held-out ones for example. */
  withRows(rows: TaskDefinition<Row>["rows"]): Task<Row> {
    return new Task({ ...this.definition, rows });
  }

  /** The rows as rollouts take them. @throws DataError naming row and column */
  load(): Promise<DatasetRow[]> {
    this.loaded ??= loadRows(this.definition);
    return this.loaded;
  }

  /** Batches of `size` rows, in an order that the seed decides; a smaller rest of a pass is left out. */
  async *batches(size: number, options: BatchesOptions = {}): AsyncGenerator<DatasetRow[]> {
    const rows = await this.load();
    const { shuffle = true, seed = 0, epochs = 1 } = options;
    const loader = new DataLoader(rows, { batchSize: Math.min(size, rows.length), shuffle, seed });
    const steps = options.steps ?? epochs * Math.max(1, Math.floor(rows.length / size));
    for (let step = 0; step < steps; step++) yield loader.next();
  }

  /** Opens tools and rewards for a policy, once; `rollOut` calls it. @throws ConfigError or ToolError */
  async open(policy: Policy): Promise<Environment> {
    if (this.opened?.policy !== policy) {
      await this.dispose();
      this.opened = { policy, environment: this.load().then((rows) => openTaskEnvironment(this, rows, policy)) };
    }
    return (await this.opened.environment).environment;
  }

  /** Ends what was opened: servers, sandboxes. It may be opened again. */
  async dispose(): Promise<void> {
    const { opened } = this;
    this.opened = null;
    await (await opened?.environment.catch(() => null))?.dispose();
  }
}

/**
 * A task of rows, tools and a reward. The rows decide the type that `prompt` and `reward` see.
 * @throws ConfigError when there are no rows.
 */
export function defineTask<Row extends object = Record<string, unknown>>(definition: TaskDefinition<Row>): Task<Row> {
  return new Task(definition);
}

export function isTask(value: object): value is Task<object> {
  return value instanceof Task;
}

async function loadRows<Row extends object>(definition: TaskDefinition<Row>): Promise<DatasetRow[]> {
  const { rows } = definition;
  const files = typeof rows === "string" ? [rows] : rows;
  if (isFiles(files)) return loadDataset(files);
  return (files as readonly Row[]).map((row, index) => toDatasetRow(row, index, definition));
}

function isFiles(rows: readonly (object | string)[]): rows is readonly string[] {
  return rows.every((row) => typeof row === "string");
}
