// npm run docs: the pages of docs/, READMEs and the API (typedoc) as a site, in site/build/html. Behind `--`: `dev` serves it and follows
// changes of docs/, `preview` serves what was built, `--no-api` leaves the API out. Installs what it needs below site/, once.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, watch, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { writeSitePages } from "../scripts/publish-pages.mjs";
import { checkSite } from "./check-site.mjs";
import { listModules } from "./list-modules.mjs";

const site = dirname(fileURLToPath(import.meta.url));
const root = dirname(site);
const pages = join(site, "build", "pages");
const api = join(pages, "api");
const [command = "build", ...options] = process.argv.slice(2).filter((word) => word !== "--no-api");
const withApi = !process.argv.includes("--no-api") && command !== "preview";

if (!["build", "dev", "preview"].includes(command)) {
  console.error(`docs: ${command} is no command; known are build, dev and preview`);
  process.exit(2);
}
install();
const require = createRequire(join(site, "package.json"));
if (command !== "preview") {
  mkdirSync(pages, { recursive: true });
  // A page that was renamed must not stay.
  for (const name of readdirSync(pages)) if (name !== "api") rmSync(join(pages, name), { recursive: true });
  if (withApi) await writeApi();
  else if (!existsSync(join(api, "index.md"))) writeNoApi();
  writeSitePages(pages);
}
if (command === "dev") follow(join(root, "docs"));
const status = await runVitepress();
if (command === "build" && status === 0) tellProblems();
process.exit(status);

/**
 * Dependencies of the site by the lockfile's hash, as scripts/bootstrap.mjs does it: they are no part of the workspace, which stays small.
 * typedoc reads the types of the workspace's own dependencies.
 */
function install() {
  const stampFile = join(site, "node_modules", ".cria-site");
  const stamp = createHash("sha256")
    .update(readFileSync(join(site, "pnpm-lock.yaml")))
    .digest("hex");
  if (!existsSync(join(root, "node_modules"))) runPnpm("--dir", root);
  if (existsSync(stampFile) && readFileSync(stampFile, "utf8") === stamp) return;
  runPnpm("--dir", site, "--ignore-workspace");
  writeFileSync(stampFile, stamp);
}

function runPnpm(...words) {
  const { packageManager } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const { status } = spawnSync("npx", ["--yes", packageManager, "install", "--frozen-lockfile", ...words], {
    stdio: "inherit",
  });
  if (status !== 0) process.exit(1);
}

/** The API by typedoc, a page for each name that a module exports. */
async function writeApi() {
  const { Application } = await import(pathToFileURL(require.resolve("typedoc")).href);
  const modules = listModules();
  const application = await Application.bootstrapWithPlugins({
    options: join(site, "typedoc.json"),
    entryPoints: modules.map(({ source }) => source),
  });
  const project = await application.convert();
  if (project === undefined) process.exit(1);
  // typedoc calls a module by its file, users by what they import.
  const names = new Map(modules.map(({ name, source }) => [nameFile(source), name]));
  for (const module of project.children) module.name = names.get(module.name);
  rmSync(api, { recursive: true, force: true });
  await application.generateOutputs(project);
}

/** typedoc's name of a module: its file below the repository, without `index` and ending. */
function nameFile(source) {
  return relative(root, source).replace(/(\/index)?\.ts$/, "");
}

/** Stands in for the API, for a quick look at the other pages. */
function writeNoApi() {
  mkdirSync(api, { recursive: true });
  writeFileSync(join(api, "index.md"), "# API\n\nThis site was built without the API: `npm run docs` builds it.\n");
}

/** Writes the pages again whenever a file below a folder has changed. */
function follow(folder) {
  let timer;
  watch(folder, { recursive: true }, (_, name) => {
    if (!name?.endsWith(".md") && !name?.endsWith(".svg")) return;
    clearTimeout(timer);
    timer = setTimeout(() => writeSitePages(pages), 200);
  });
}

/** Ends with status 1 if the built site lacks something. */
function tellProblems() {
  const problems = checkSite(join(site, "build", "html"), withApi ? listModules().map(({ name }) => name) : []);
  if (problems.length === 0) return;
  console.error(`docs: ${problems.length} problems\n  ${problems.slice(0, 20).join("\n  ")}`);
  process.exit(1);
}

async function runVitepress() {
  const program = join(dirname(require.resolve("vitepress/package.json")), "bin", "vitepress.js");
  const child = spawn(process.execPath, [program, command, site, ...options], { cwd: site, stdio: "inherit" });
  const [code] = await once(child, "exit");
  return code ?? 1;
}
