// For the other packages of Cria: names of the package that are no part of its interface, and change without notice. `index.ts` has what
// users' programs need.

export { describeMessages, nameImageFile } from "./dump/dump-images.js";
export { DUMP_FORMAT_VERSION } from "./dump/dump-line.js";
export { findMismatch } from "./dump/find-mismatch.js";
export { parseDumpLine } from "./dump/read-dump.js";
export { isOfRow, restoreRow } from "./dump/restore-trajectory.js";
export { TokenTexts } from "./dump/token-texts.js";
export { formatDumpLine, writeTrainingRows } from "./dump/write-dump.js";
export {
  type FilterField,
  type FilterType,
  type FilterValue,
  filterFamilies,
  filterFields,
} from "./filter/filter-fields.js";
export { type BindField, parseFilterOf } from "./filter/parse-filter.js";
export * from "./index.js";
export type { CountsByKind, WorkerState, WorkerView } from "./live/cluster-view.js";
export { findOtherText } from "./replay/find-other-text.js";
export { makeReadCalls } from "./replay/recorded-answers.js";
export { listLineCalls } from "./replay/recorded-calls.js";
