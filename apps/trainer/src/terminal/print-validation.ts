import type { StepMetrics } from "@cria/trainer";
import { colors as pc } from "./colors.js";

/** Prints the judged values, one per line, and the share of failures if there are any. */
export function printValidation(metrics: StepMetrics): void {
  for (const [name, value] of Object.entries(metrics))
    if (name.startsWith("val-core/") && !(name.endsWith("/failed_ratio") && value === 0))
      console.log(`${name.slice("val-core/".length)}  ${pc.bold(value.toFixed(4))}`);
}
