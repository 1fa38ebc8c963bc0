// Makes releases; .github/workflows/release.yml runs it.
//
//   node scripts/release.mjs version   # raises all versions by the texts in .changeset, which move into CHANGELOG.md
//   node scripts/release.mjs publish   # packs, and publishes what the registry does not have
//
// `publish` refuses while package.json's `repository.url` is empty: packages must say where they come from.
import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { packAll, packages } from "./pack.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const readManifest = (folder) => JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"));

/** All packages have one version, and one changelog: that of `cria`, kept at the root. */
function raiseVersions() {
  execFileSync(join(root, "node_modules", ".bin", "changeset"), ["version"], { cwd: root, stdio: "inherit" });
  const written = readFileSync(join(root, "apps", "trainer", "CHANGELOG.md"), "utf8");
  const section = written.slice(written.indexOf("\n## ") + 1).trim();
  const changelog = readFileSync(join(root, "CHANGELOG.md"), "utf8");
  const at = changelog.indexOf("\n## ");
  const [head, rest] = at < 0 ? [changelog, ""] : [changelog.slice(0, at), changelog.slice(at)];
  writeFileSync(join(root, "CHANGELOG.md"), `${head.trimEnd()}\n\n${section}\n${rest}`);
  for (const folder of [...packages, "native"]) rmSync(join(root, folder, "CHANGELOG.md"), { force: true });
}

function publish() {
  const { repository } = readManifest(".");
  if (!repository?.url)
    fail("package.json repository.url is empty: expected the address of the repository; fill it in before a release");
  const waiting = readdirSync(join(root, ".changeset")).filter((file) => file.endsWith(".md") && file !== "README.md");
  if (waiting.length > 0)
    fail(`.changeset has changes that no version has: ${waiting.join(", ")}; run: node scripts/release.mjs version`);
  for (const folder of [...packages, "native"]) {
    const manifest = { ...readManifest(folder), repository: { ...repository, directory: folder } };
    writeFileSync(join(root, folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  }
  const out = join(root, ".cache", "tarballs");
  for (const tarball of packAll(out)) publishOnce(tarball);
  const { version } = readManifest("apps/trainer");
  execFileSync("git", ["tag", `cria@${version}`], { cwd: root });
  console.log(`New tag: cria@${version}`);
}

/** Publishes a tarball unless the registry has it, so that an interrupted release can be repeated. */
function publishOnce(tarball) {
  const manifest = execFileSync("tar", ["-xOf", tarball, "package/package.json"], { encoding: "utf8" });
  const { name, version } = JSON.parse(manifest);
  if (spawnSync("npm", ["view", `${name}@${version}`, "version"], { encoding: "utf8" }).stdout.trim() === version) {
    console.log(`${name}@${version} is published already`);
    return;
  }
  execFileSync("npm", ["publish", tarball, "--access", "public", "--provenance"], { stdio: "inherit" });
}

function fail(message) {
  console.error(`release: ${message}`);
  process.exit(1);
}

const command = process.argv[2];
if (command === "version") raiseVersions();
else if (command === "publish") publish();
else fail(`expected version or publish, received ${command ?? "nothing"}`);
