import { Registry } from "@cria/core";
import { formatValue } from "@cria/core/internal";
import { DifficultySampler } from "./difficulty-sampler.js";
import { askSampler, checkPositions, makeSampler, refusePick } from "./make-sampler.js";
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
  return makeSampler<RowSampler, RowSamplerClass<Row>, RowPicker<Row>>(given, subject, {
    what: "rows",
    construct: (Sampler) => new Sampler(rows, options),
    wrap: (pick) => ({ pick: (request) => pick({ ...request, rows }) }),
  });
}

function isSampled(entry: unknown): entry is Exclude<PickedRow, number> {
  const { row, samples } = (entry ?? {}) as { row?: unknown; samples?: unknown };
  return typeof row === "number" && isSampleCount(samples);
}

/**
 * Asks a sampler for the rows of a step.
 * @param rows number of rows. @throws DataError unless the sampler meets the contract of `RowSampler.pick`.
 */
export function pickRows(sampler: RowSampler, request: PickRequest, rows: number, name: string): readonly PickedRow[] {
  const subject = `${name}: step ${request.step}`;
  const picked = askSampler(sampler, request, { what: "rows", subject });
  checkPicked(picked, request, rows, subject);
  return picked;
}

function checkPicked(
  picked: unknown,
  { count, spare }: PickRequest,
  rows: number,
  subject: string,
): asserts picked is readonly PickedRow[] {
  const refuse = (expected: string, received: string) => refusePick("rows", subject, { expected, received });
  if (!Array.isArray(picked)) throw refuse("a list of positions", formatValue(picked));
  const wrong = picked.findIndex((entry) => typeof entry !== "number" && !isSampled(entry));
  if (wrong >= 0)
    throw refuse(`positions, or { row, samples } with samples from 1 to ${MOST_SAMPLES}`, formatValue(picked[wrong]));
  const indices: number[] = picked.map((entry: PickedRow) => (typeof entry === "number" ? entry : entry.row));
  const most = count + spare;
  if (picked.length < count || picked.length > most)
    throw refuse(spare > 0 ? `${count} to ${most} positions` : `${count} positions`, `${picked.length}`);
  checkPositions(indices, rows, "row", refuse);
}
