import { ConfigError } from "@cria/core";
import { DataLoader, type DatasetRow, loadDataset } from "@cria/rollout";
import type { Policy } from "../policy/policy.js";
import type { Environment } from "./environment.js";
import { type OpenedEnvironment, openTaskEnvironment } from "./open-environment.js";
import type { TaskDefinition } from "./task-definition.js";
import { toDatasetRow } from "./task-rows.js";

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
      this.opened = {
        policy,
        environment: this.load().then((rows) => openTaskEnvironment(this.definition, rows, policy)),
      };
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
