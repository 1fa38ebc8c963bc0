import { ConfigError, DataError, Registry } from "@cria/core";
import { formatValue } from "@cria/core/internal";
import { DifficultySampler } from "./difficulty-sampler.js";
import type { PickRequest, RowPicker, RowSampler, RowSamplerClass, RowSamplerOptions } from "./row-sampler.js";

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

/** @param rows number of rows. @throws DataError unless `picked` meets the contract of `RowSampler.pick`. */
export function checkPicked(
  picked: unknown,
  { step, count, spare }: PickRequest,
  rows: number,
  subject: string,
): asserts picked is readonly number[] {
  const refuse = (expected: string, received: string) =>
    new DataError("picked no rows of a step", {
      code: "data/bad-pick",
      subject: `${subject}: step ${step}`,
      expected,
      received,
    });
  if (!Array.isArray(picked)) throw refuse("a list of positions", formatValue(picked));
  const most = count + spare;
  if (picked.length < count || picked.length > most)
    throw refuse(spare > 0 ? `${count} to ${most} positions` : `${count} positions`, `${picked.length}`);
  const wrong = picked.find((index) => !Number.isInteger(index) || index < 0 || index >= rows);
  if (wrong !== undefined) throw refuse(`whole numbers from 0 to ${rows - 1}`, formatValue(wrong));
  const seen = new Set<number>();
  const twice = picked.find((index: number) => seen.has(index) || !seen.add(index));
  if (twice !== undefined) throw refuse("each row once", `row ${twice} twice`);
}
