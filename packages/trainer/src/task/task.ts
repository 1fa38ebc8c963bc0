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
  /** Total number of batches, instead of `epochs`; passes are repeated as needed. */
  steps?: number;
  /** True: each pass has another order; default true. */
  shuffle?: boolean;
  /** Seed of the order; default 0. */
  seed?: number;
}

/**
 * Rows, and the environment in which the policy answers them. Make it with `defineTask`. Several policies and
 * trainings may use it at once; `train` opens and closes its own tools.
 */
export class Task<Row extends object = DatasetRow> {
  readonly definition: TaskDefinition<Row>;
  private loaded: Promise<TaskRow<Row>[]> | null = null;
  private readonly opened = new Map<Policy, Promise<OpenedEnvironment>>();

  /** @param rowsName name of its rows in errors. @throws ConfigError that names the wrong field. */
  constructor(
    definition: TaskDefinition<Row>,
    private readonly rowsName = "rows",
  ) {
    checkDefinition(definition as TaskDefinition<object>);
    const { interaction: given } = definition;
    this.definition = typeof given === "function" ? { ...definition, interaction: interaction(given) } : definition;
  }

  /**
   * The same task over other rows, for example held-out ones.
   * @param rowsName name of these rows in errors; default "rows".
   * @throws ConfigError when there are none.
   */
  withRows(rows: TaskDefinition<Row>["rows"], rowsName?: string): Task<Row> {
    return new Task({ ...this.definition, rows }, rowsName);
  }

  /**
   * Loads the rows for rollouts, once; the task's own rows are in `extraInfo.row`.
   * @throws DataError naming row and column; HubError when an address cannot be resolved.
   */
  load(): Promise<TaskRow<Row>[]> {
    this.loaded ??= this.read().catch((error: unknown) => {
      // A missing file may exist at the next attempt.
      this.loaded = null;
      throw error;
    });
    return this.loaded;
  }

  /**
   * Yields batches of `size` rows (all rows if fewer) in an order determined by the seed; a smaller rest of a pass
   * is dropped.
   * @throws ConfigError unless size, steps and epochs are whole numbers of at least 1 (steps: 0).
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
   * Opens tools and rewards for a policy, once; `rollOut` calls it. `dispose` closes them.
   * @throws ConfigError or ToolError when they cannot be opened, or the policy's context is too small.
   */
  async open({ live: policy }: Policy): Promise<Environment> {
    let opened = this.opened.get(policy);
    if (!opened) {
      opened = this.openFor(policy);
      this.opened.set(policy, opened);
      // The next call tries again.
      opened.catch(() => this.opened.delete(policy));
    }
    return (await opened).environment;
  }

  // Loaded on first use, so that a definition alone is light.

  private async read(): Promise<TaskRow<Row>[]> {
    const { loadRows } = await import("./load-rows.js");
    return loadRows(this.definition, this.rowsName);
  }

  private async openFor(policy: Policy): Promise<OpenedEnvironment> {
    const rows = await this.load();
    const { openTaskEnvironment } = await import("./open-environment.js");
    return openTaskEnvironment(this.definition, rows, policy);
  }

  /** Closes servers and sandboxes. The task may be opened again. */
  async dispose(): Promise<void> {
    const opened = [...this.opened.values()];
    this.opened.clear();
    for (const environment of opened) await (await environment.catch(() => null))?.dispose();
  }
}

/**
 * Defines a task of rows, tools and a reward. The rows determine the type of `row` in `prompt`, `truth` and
 * `reward`; rows of files are `DatasetRow`s.
 * @throws ConfigError that names the wrong field. Rows are read and checked by `load`, or on first use.
 */
export function defineTask<Item extends object | string = string>(
  definition: TaskDefinition<RowOf<Item>> & { rows: readonly Item[] | string | readonly string[] },
): Task<RowOf<Item>> {
  return new Task<RowOf<Item>>(definition);
}

/** Type of the rows: your own values, or `DatasetRow`s of files. */
type RowOf<Item extends object | string> = Item extends object ? Item : DatasetRow;

export function isTask(value: object): value is Task<object> {
  return value instanceof Task;
}
