import { existsSync } from "node:fs";
import { type Browser, chromium, type Page } from "playwright-core";

/** The one without a window's interface comes first: it takes half the time. */
const PLACES = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"].map(
  (name) => `/usr/bin/${name}`,
);
const found = PLACES.find((path) => existsSync(path));

/** No browser is installed: tests are skipped, except in CI, where they fail. */
export const noBrowser = !process.env.CI && found === undefined;

export async function openBrowser(): Promise<Browser> {
  if (found === undefined)
    throw new Error(`no browser: expected one of ${PLACES.join(", ")}; install Debian's chromium-headless-shell`);
  // Its sandbox needs rights that containers lack.
  return chromium.launch({ executablePath: found, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
}

/** A page, and its complaints. */
export interface WatchedPage {
  page: Page;
  complaints: string[];
}

/** Opens a page that records errors and warnings of its console, and requests to other servers. */
export async function openPage(browser: Browser, origin: string, theme: "light" | "dark"): Promise<WatchedPage> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    colorScheme: theme,
    reducedMotion: "reduce",
    permissions: ["clipboard-read", "clipboard-write"],
  });
  const page = await context.newPage();
  // A busy machine exceeds Playwright's 30 s; the test's own limit ends hanging ones.
  page.setDefaultTimeout(240_000);
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
