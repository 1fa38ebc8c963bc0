import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import { expect } from "vitest";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Fails on each accessibility rule that the page breaks. */
export async function expectAccessible(page: Page, where: string): Promise<void> {
  // Evaluated through the browser's protocol, to which the page's policy does not apply.
  await page.evaluate(axe);
  const violations = (await page.evaluate("axe.run().then((result) => result.violations)")) as {
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
