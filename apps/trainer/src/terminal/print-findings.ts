import type { Finding } from "@cria/trainer";
import { colors as pc } from "./colors.js";
import { describeProblem } from "./describe-problem.js";
import { findWidth } from "./wrap-text.js";

/** Prints the coach's findings about a run, a paragraph each. */
export function printFindings(findings: readonly Finding[], runPath: string): void {
  if (findings.length === 0)
    console.log(`${pc.green("the coach sees nothing wrong")} (docs/coach-rules.md says what it looks for)`);
  for (const finding of findings) console.log(describeProblem(finding, runPath, findWidth()));
}
