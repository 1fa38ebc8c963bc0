import { ConfigError, DataError, Registry } from "@cria/core";
import { formatValue } from "@cria/core/internal";
import { DifficultySampler } from "./difficulty-sampler.js";
import type {
  PickedRow,
  PickRequest,
  RowPicker,
  RowSampler,
  RowSamplerClass,
  RowSamplerOptions,
} from "./row-sampler.js";
import { isSampleCount, MOST_SAMPLES } from "./row-samples.js";

/** Samplers by `data.sampler.class_name`, if no file is named. */
export const rowSamplers = new Registry<RowSamplerClass | RowPicker>(
  "sampler of rows",
  { difficulty: DifficultySampler },
  { subject: "data.sampler.class_name", remedy: "use one of these, or name your own: data.sampler.class_path" },
);

/**
 * @param subject name of `given` in errors. @throws ConfigError when `given` is neither a sampler class nor a
 * function.
 */
export function makeRowSampler<Row extends object>(
  given: unknown,
  rows: readonly Row[],
  options: RowSamplerOptions,
  subject: string,
): RowSampler {
  const refuse = (expected: string, received: string) =>
    new ConfigError("does not sample rows", { code: "config/bad-sampler", subject, expected, received });
  if (typeof given !== "function")
    throw refuse("a function that picks rows, or a class with a method pick()", formatValue(given));
  const isClass = /^class\b/.test(Function.prototype.toString.call(given)) || given.prototype?.pick !== undefined;
  if (!isClass) return { pick: (request) => (given as RowPicker<Row>)({ ...request, rows }) };
  const sampler = new (given as RowSamplerClass<Row>)(rows, options);
  if (typeof sampler.pick !== "function")
    throw refuse("a class with a method pick()", `a class without it: ${given.name}`);
  for (const name of ["save", "restore"] as const)
    if (sampler.update && !sampler[name])
      throw refuse(
        "save() and restore() beside update(): a run that goes on must know what was told before",
        `none named ${name}`,
      );
  return sampler;
}

function isSampled(entry: unknown): entry is Exclude<PickedRow, number> {
  const { row, samples } = (entry ?? {}) as { row?: unknown; samples?: unknown };
  return typeof row === "number" && isSampleCount(samples);
}

/** @param rows number of rows. @throws DataError unless `picked` meets the contract of `RowSampler.pick`. */
export function checkPicked(
  picked: unknown,
  { step, count, spare }: PickRequest,
  rows: number,
  subject: string,
): asserts picked is readonly PickedRow[] {
  const refuse = (expected: string, received: string) =>
    new DataError("picked no rows of a step", {
      code: "data/bad-pick",
      subject: `${subject}: step ${step}`,
      expected,
      received,
    });
  if (!Array.isArray(picked)) throw refuse("a list of positions", formatValue(picked));
  const wrongEntry = picked.find((entry) => typeof entry !== "number" && !isSampled(entry));
  if (wrongEntry !== undefined)
    throw refuse(`positions, or { row, samples } with samples from 1 to ${MOST_SAMPLES}`, formatValue(wrongEntry));
  const indices: number[] = picked.map((entry: PickedRow) => (typeof entry === "number" ? entry : entry.row));
  const most = count + spare;
  if (picked.length < count || picked.length > most)
    throw refuse(spare > 0 ? `${count} to ${most} positions` : `${count} positions`, `${picked.length}`);
  const wrong = indices.find((index) => !Number.isInteger(index) || index < 0 || index >= rows);
  if (wrong !== undefined) throw refuse(`whole numbers from 0 to ${rows - 1}`, formatValue(wrong));
  const seen = new Set<number>();
  const twice = indices.find((index) => seen.has(index) || !seen.add(index));
  if (twice !== undefined) throw refuse("each row once", `row ${twice} twice`);
}
