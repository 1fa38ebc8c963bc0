import { ConfigError } from "@cria/core";
import { type DatasetRecord, readRecords } from "./read-records.js";

/**
 * Source of raw rows. A dataset of your own (`data.custom_cls`) extends this class and overrides `mapRecord` to
 * rename or build columns, or `load` to read from elsewhere.
 *
 * ```ts
 * export class Sums extends RolloutDataset {
 *   override mapRecord(record: { a: number; b: number }) {
 *     const content = `What is ${record.a} + ${record.b}?`;
 *     return { data_source: "sums", prompt: [{ role: "user", content }], reward_model: { ground_truth: record.a +
 * record.b } };
 *   }
 * }
 * ```
 */
export class RolloutDataset {
  /**
   * @param files paths of `data.train_files` or `data.val_files`.
   * @param config the section `data` of the config.
   */
  constructor(
    protected readonly files: readonly string[],
    protected readonly config: Readonly<Record<string, unknown>> = {},
  ) {}

  /** The rows of each file, in order, in the columns of docs/rows.md. */
  async load(): Promise<DatasetRecord[][]> {
    const files: DatasetRecord[][] = [];
    for (const file of this.files) {
      const records = await readRecords(file);
      files.push(records.flatMap(({ value, place }) => this.mapToRecords(value, place)));
    }
    return files;
  }

  /** Maps a file's record to a row; null drops it. */
  mapRecord(record: unknown, _place: string): unknown {
    return record;
  }

  private mapToRecords(record: unknown, place: string): DatasetRecord[] {
    const value = this.mapRecord(record, place);
    return value === null ? [] : [{ value, place }];
  }
}

export type DatasetClass = new (
  files: readonly string[],
  config?: Readonly<Record<string, unknown>>,
) => Pick<RolloutDataset, "load">;

/** @throws ConfigError unless `exported` is a dataset class, that is, has a method `load`. */
export function checkDatasetClass(exported: unknown, subject: string): DatasetClass {
  const prototype: unknown = typeof exported === "function" ? exported.prototype : undefined;
  if (typeof (prototype as { load?: unknown } | undefined)?.load === "function") return exported as DatasetClass;
  throw new ConfigError("is not a dataset class", {
    code: "config/bad-value",
    subject,
    expected: "a class that extends RolloutDataset of @cria/rollout, or has its method load()",
    received: typeof exported === "function" ? "a function without a method load" : typeof exported,
  });
}
