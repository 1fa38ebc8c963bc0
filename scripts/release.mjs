// Makes releases; .github/workflows/release.yml runs it.
//
//   node scripts/release.mjs version   # raises all versions by the texts in .changeset, which move into CHANGELOG.md
//   node scripts/release.mjs status    # prints publish=true if that version is finished, and not whole in the registry
//   node scripts/release.mjs publish --prebuilds <folder>   # packs, and publishes what the registry does not have
//
// The folder holds the packages of every platform, which prebuilds.yml has built and checked there. `publish` refuses
// while package.json's `repository.url` is empty: packages must say where they come from.
import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { targets } from "../native/scripts/targets.mjs";
import { listPlatformPackages, packAll, packages } from "./pack.mjs";
import { npmProgram, packageProgram } from "./programs.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const readManifest = (folder) => JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"));

/** All packages have one version, and one changelog: that of `cria`, kept at the root. */
function raiseVersions() {
  const [changeset, ...args] = packageProgram(root, "@changesets/cli", "changeset");
  execFileSync(changeset, [...args, "version"], { cwd: root, stdio: "inherit" });
  const written = readFileSync(join(root, "apps", "trainer", "CHANGELOG.md"), "utf8");
  const section = written.slice(written.indexOf("\n## ") + 1).trim();
  const changelog = readFileSync(join(root, "CHANGELOG.md"), "utf8");
  const at = changelog.indexOf("\n## ");
  const [head, rest] = at < 0 ? [changelog, ""] : [changelog.slice(0, at), changelog.slice(at)];
  writeFileSync(join(root, "CHANGELOG.md"), `${head.trimEnd()}\n\n${section}\n${rest}`);
  for (const folder of [...packages, "native"]) rmSync(join(root, folder, "CHANGELOG.md"), { force: true });
}

/** Texts of changes that no version has. */
const listWaiting = () =>
  readdirSync(join(root, ".changeset")).filter((file) => file.endsWith(".md") && file !== "README.md");

/** Whether the registry has a package. */
function isPublished(name, version) {
  const [npm, ...args] = npmProgram("npm", "view", `${name}@${version}`, "version");
  return spawnSync(npm, args, { encoding: "utf8" }).stdout.trim() === version;
}

/** Packages of this version that the registry lacks: an interrupted release is repeated. */
function listUnpublished() {
  const { version } = readManifest("native");
  const platforms = listPlatformPackages(
    targets.map(({ name }) => name),
    version,
  );
  const names = [...packages, "native"].map((folder) => readManifest(folder).name).concat(Object.keys(platforms));
  return names.filter((name) => !isPublished(name, version));
}

/** As a line of a workflow's outputs. */
function printStatus() {
  const isFinished = Boolean(readManifest(".").repository?.url) && listWaiting().length === 0;
  console.log(`publish=${isFinished && listUnpublished().length > 0}`);
}

function publish(prebuilds) {
  const { repository } = readManifest(".");
  if (!repository?.url)
    fail("package.json repository.url is empty: expected the address of the repository; fill it in before a release");
  const waiting = listWaiting();
  if (waiting.length > 0)
    fail(`.changeset has changes that no version has: ${waiting.join(", ")}; run: node scripts/release.mjs version`);
  if (listUnpublished().length === 0) return console.log("every package of this version is published");
  if (!prebuilds) fail("publish needs --prebuilds, a folder with the packages of every platform");
  for (const folder of [...packages, "native"]) {
    const manifest = { ...readManifest(folder), repository: { ...repository, directory: folder } };
    writeFileSync(join(root, folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  }
  const out = join(root, ".cache", "tarballs");
  for (const tarball of packAll(out, { prebuilds })) publishOnce(tarball);
  const { version } = readManifest("apps/trainer");
  execFileSync("git", ["tag", `cria@${version}`], { cwd: root });
  console.log(`New tag: cria@${version}`);
}

/** Publishes a tarball unless the registry has it, so that an interrupted release can be repeated. */
function publishOnce(tarball) {
  const manifest = execFileSync("tar", ["-xOf", tarball, "package/package.json"], { encoding: "utf8" });
  const { name, version } = JSON.parse(manifest);
  if (isPublished(name, version)) {
    console.log(`${name}@${version} is published already`);
    return;
  }
  const [npm, ...args] = npmProgram("npm", "publish", tarball, "--access", "public", "--provenance");
  execFileSync(npm, args, { stdio: "inherit" });
}

function fail(message) {
  console.error(`release: ${message}`);
  process.exit(1);
}

const { values, positionals } = parseArgs({ allowPositionals: true, options: { prebuilds: { type: "string" } } });
const [command] = positionals;
if (command === "version") raiseVersions();
else if (command === "status") printStatus();
else if (command === "publish") publish(values.prebuilds);
else fail(`expected version, status or publish, received ${command ?? "nothing"}`);
