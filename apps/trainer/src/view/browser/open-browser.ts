import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Browser, chromium, type Page } from "playwright-core";
import { expect } from "vitest";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const found = PLACES.find((path) => existsSync(path));

/** No browser is installed: tests are skipped, but in CI they fail. */
export const noBrowser = !process.env.CI && found === undefined;

export async function openBrowser(): Promise<Browser> {
  if (found === undefined)
    throw new Error(`no browser: expected one of ${PLACES.join(", ")}; install Debian's chromium`);
  // Its sandbox needs rights that containers lack.
  return chromium.launch({ executablePath: found, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
}

/** A page, and what it complained about. */
export interface WatchedPage {
  page: Page;
  complaints: string[];
}

/** Opens a page that notes errors and warnings of its console, and requests to other servers. */
export async function openPage(browser: Browser, origin: string, theme: "light" | "dark"): Promise<WatchedPage> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    colorScheme: theme,
    reducedMotion: "reduce",
    permissions: ["clipboard-read", "clipboard-write"],
  });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error.stack ?? error)));
  page.on("request", (request) => {
    if (!request.url().startsWith(origin)) complaints.push(`asked for ${request.url()}`);
  });
  return { page, complaints };
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Fails on each rule of accessibility that the page breaks. */
export async function expectAccessible(page: Page, where: string): Promise<void> {
  // Evaluated by the browser's protocol, which the page's policy does not concern.
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
