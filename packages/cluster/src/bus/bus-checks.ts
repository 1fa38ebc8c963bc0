import { type ChecksOf, optionChecks } from "@cria/core/internal";
import type { BusOptions } from "./job-bus.js";

/** Checks of the options that every kind of bus has. */
export const busChecks: ChecksOf<Required<BusOptions>> = {
  maxOutstanding: optionChecks.number,
  onProblem: optionChecks.function,
};
