import { checkOptions, optionChecks } from "@cria/core/internal";
import type { DatasetRow } from "@cria/rollout";
import { interaction } from "@cria/tools/light";
import type { Policy } from "../policy/policy.js";
import { checkCount, checkDefinition } from "./check-definition.js";
import type { Environment } from "./environment.js";
import type { OpenedEnvironment } from "./open-environment.js";
import type { TaskDefinition, TaskRow } from "./task-definition.js";

const { any } = optionChecks;

export interface BatchesOptions {
  /** Passes over the rows, at least 1; default 1. */
  epochs?: number;
  /** Batches in all, instead of `epochs`; there are as many passes as they take. */
  steps?: number;
  /** Whether each pass has an order of its own; default true. */
  shuffle?: boolean;
  /** Seed of that order; default 0. */
  seed?: number;
}

/**
 * Rows, and the environment that the policy answers them in. Make it with `defineTask`. Several policies and trainings may use
 * it at once; `train` opens and ends tools of its own.
 */
export class Task<Row extends object = DatasetRow> {
  readonly definition: TaskDefinition<Row>;
  private loaded: Promise<TaskRow<Row>[]> | null = null;
  private readonly opened = new Map<Policy, Promise<OpenedEnvironment>>();

  /** @param rowsName what errors call its rows. @throws ConfigError that names the field that is wrong. */
  constructor(
    definition: TaskDefinition<Row>,
    private readonly rowsName = "rows",
  ) {
    checkDefinition(definition as TaskDefinition<object>);
    const { interaction: given } = definition;
    this.definition = typeof given === "function" ? { ...definition, interaction: interaction(given) } : definition;
  }

  /**
   * The same task over other rows, held-out ones for example.
   * @param rowsName what errors call them; default "rows".
   * @throws ConfigError when there are none.
   */
  withRows(rows: TaskDefinition<Row>["rows"], rowsName?: string): Task<Row> {
    return new Task({ ...this.definition, rows }, rowsName);
  }

  /**
   * The rows as rollouts take them, read once; the task's own stand in `extraInfo.row`.
   * @throws DataError naming row and column; HubError when an address cannot be followed.
   */
  load(): Promise<TaskRow<Row>[]> {
    this.loaded ??= this.read().catch((error: unknown) => {
      // A file may be there the next time.
      this.loaded = null;
      throw error;
    });
    return this.loaded;
  }

  /**
   * Batches of `size` rows (all rows, where there are fewer), in an order that the seed decides; a smaller rest of a pass is left
   * out.
   * @throws ConfigError for a size, steps or epochs that are no whole number of at least 1 (steps: 0).
   */
  async *batches(size: number, options: BatchesOptions = {}): AsyncGenerator<TaskRow<Row>[]> {
    const { shuffle = true, seed = 0, epochs = 1, steps } = options;
    checkOptions("task.batches", options, {
      shuffle: optionChecks.flag,
      seed: optionChecks.whole,
      epochs: any,
      steps: any,
    });
    checkCount("task.batches: size", size, 1);
    checkCount("task.batches: epochs", epochs, 1);
    if (steps !== undefined) checkCount("task.batches: steps", steps, 0);
    const rows = await this.load();
    const { DataLoader } = await import("./load-rows.js");
    const loader = new DataLoader(rows, { batchSize: Math.min(size, rows.length), shuffle, seed });
    const total = steps ?? epochs * loader.batchesPerEpoch;
    for (let step = 0; step < total; step++) yield loader.next();
  }

  /**
   * Opens tools and rewards for a policy, once; `rollOut` calls it. `dispose` ends them.
   * @throws ConfigError or ToolError when they cannot be opened, or the policy's context is too small.
   */
  async open({ live: policy }: Policy): Promise<Environment> {
    let opened = this.opened.get(policy);
    if (!opened) {
      opened = this.openFor(policy);
      this.opened.set(policy, opened);
      // It may be tried again.
      opened.catch(() => this.opened.delete(policy));
    }
    return (await opened).environment;
  }

  // What runs a task is loaded with its first use: a definition alone is light.

  private async read(): Promise<TaskRow<Row>[]> {
    const { loadRows } = await import("./load-rows.js");
    return loadRows(this.definition, this.rowsName);
  }

  private async openFor(policy: Policy): Promise<OpenedEnvironment> {
    const rows = await this.load();
    const { openTaskEnvironment } = await import("./open-environment.js");
    return openTaskEnvironment(this.definition, rows, policy);
  }

  /** Ends what was opened: servers, sandboxes. It may be opened again. */
  async dispose(): Promise<void> {
    const opened = [...this.opened.values()];
    this.opened.clear();
    for (const environment of opened) await (await environment.catch(() => null))?.dispose();
  }
}

/**
 * A task of rows, tools and a reward. The rows decide the type of `row` that `prompt`, `truth` and `reward` see; rows of files are
 * `DatasetRow`s.
 * @throws ConfigError that names the field that is wrong. Rows are read and checked by `load`, or when they are first needed.
 */
export function defineTask<Item extends object | string = string>(
  definition: TaskDefinition<RowOf<Item>> & { rows: readonly Item[] | string | readonly string[] },
): Task<RowOf<Item>> {
  return new Task<RowOf<Item>>(definition);
}

/** What rows are made of: values of your own, or files of `DatasetRow`s. */
type RowOf<Item extends object | string> = Item extends object ? Item : DatasetRow;

export function isTask(value: object): value is Task<object> {
  return value instanceof Task;
}
