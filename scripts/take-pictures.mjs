// Takes the pictures of `cria view` that README.md and docs/ show, with an installed chromium, after a build of the
// viewer.
//   node --conditions=cria-source --import tsx scripts/take-pictures.mjs [view-step] [view-tokens] [view-images]
// Without names, all. Their runs must lie where their programs write them: `npm run demo`; `npm start` in
// examples/zoom.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { openBrowser, openPage } from "../apps/trainer/src/view/browser/open-browser.ts";
import { listenViewer } from "../apps/trainer/src/view/server/listen.ts";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const demo = join(root, "runs", "demo");
const zoom = join(root, "examples", "zoom", "build", "runs", "zoom", "grpo-1");

/** For each picture: its run, the page's address in that run, and a text that the ready page shows. */
const pictures = {
  "view-step": { run: demo, at: "dumps/6?sort=spread&down=1", theme: "light", waitsFor: ".group-row" },
  "view-tokens": { run: demo, at: "dumps/10/episodes/46?view=tokens&token=93", theme: "dark", waitsFor: ".token-line" },
  "view-images": {
    run: zoom,
    at: "dumps/validation-250/episodes/1",
    theme: "light",
    waitsFor: ".picture img",
    height: 860,
  },
};

async function takePicture(browser, name) {
  const { run, at, theme, waitsFor, height = 720 } = pictures[name];
  if (!existsSync(run)) throw new Error(`${name}: no run in ${run}; the first lines of this script say what makes it`);
  const server = await listenViewer({ folders: [run], host: "127.0.0.1", port: 0 });
  try {
    const { origin } = new URL(server.url);
    const { page, complaints } = await openPage(browser, origin, theme);
    await page.setViewportSize({ width: 1280, height });
    const [{ id }] = /** @type {{ id: string }[]} */ (await (await fetch(`${origin}/api/runs`)).json());
    await page.goto(`${origin}/#/runs/${encodeURIComponent(id)}/${at}`);
    await page.locator(waitsFor).first().waitFor();
    // A dump that is opened for the first time is shown while it is read.
    await page.getByText(/^reading: /).waitFor({ state: "detached" });
    await page.waitForFunction("[...document.images].every((image) => image.complete)");
    if (complaints.length > 0) throw new Error(`${name}: ${complaints.join("\n")}`);
    await page.screenshot({ path: join(root, "docs", `${name}.png`) });
    await page.context().close();
  } finally {
    await server.close();
  }
}

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !(name in pictures));
if (unknown.length > 0)
  throw new Error(`no such picture: ${unknown.join(", ")}; there are ${Object.keys(pictures).join(", ")}`);
const browser = await openBrowser();
try {
  for (const name of wanted.length > 0 ? wanted : Object.keys(pictures)) await takePicture(browser, name);
} finally {
  await browser.close();
}
