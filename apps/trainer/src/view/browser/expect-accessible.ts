import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import { expect } from "vitest";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Fails on each accessibility rule that the page breaks. */
export async function expectAccessible(page: Page, where: string): Promise<void> {
  // Evaluated through the browser's protocol, to which the page's policy does not apply.
  if (await page.evaluate('typeof axe === "undefined"')) await page.evaluate(axe);
  // axe makes only the first of the other results, which nobody reads.
  const run = 'axe.run({ resultTypes: ["violations"] }).then((result) => result.violations)';
  const violations = (await page.evaluate(run)) as {
    id: string;
    nodes: { html: string; failureSummary: string }[];
  }[];
  const texts = violations.map(
    ({ id, nodes }) =>
      `${id}: ${nodes
        .slice(0, 3)
        .map((node) => `${node.html}\n${node.failureSummary}`)
        .join("\n")}`,
  );
  expect(texts, where).toEqual([]);
}
