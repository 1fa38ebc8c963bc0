import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { packages } from "../scripts/pack.mjs";

const root = join(import.meta.dirname, "..");
const manifests = [".", ...packages, "native"];

/** A copy of the files that a release reads and writes, so that the checkout stays unchanged. */
let copy: string;
beforeEach(() => {
  copy = mkdtempSync(join(tmpdir(), "cria-release-"));
  const files = ["pnpm-workspace.yaml", "CHANGELOG.md", ".changeset", "scripts", "native/scripts", "native/index.cjs"];
  for (const path of [...files, ...manifests.map((folder) => join(folder, "package.json"))]) {
    mkdirSync(dirname(join(copy, path)), { recursive: true });
    cpSync(join(root, path), join(copy, path), { recursive: true });
  }
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  writeFileSync(join(copy, ".changeset", "one.md"), '---\n"cria": minor\n---\n\nWhat a user notices.\n');
  spawnSync("git", ["init", "-q", "-b", "main"], { cwd: copy });
});
afterEach(() => rmSync(copy, { recursive: true, force: true }));

const release = (command: string) =>
  spawnSync(process.execPath, [join(copy, "scripts", "release.mjs"), command], { cwd: copy, encoding: "utf8" });
const readManifest = (folder: string) => JSON.parse(readFileSync(join(copy, folder, "package.json"), "utf8"));
const setRepository = (url: string) => {
  const manifest = { ...readManifest("."), repository: { type: "git", url } };
  writeFileSync(join(copy, "package.json"), JSON.stringify(manifest));
};

describe("a release", () => {
  it("raises all versions together and moves the texts into one changelog", () => {
    const before = readManifest("apps/trainer").version;
    const { status, stderr } = release("version");
    expect(status, stderr).toBe(0);
    const { version } = readManifest("apps/trainer");
    expect(version).not.toBe(before);
    for (const folder of [...packages, "native"]) expect(readManifest(folder).version, folder).toBe(version);
    const changelog = readFileSync(join(copy, "CHANGELOG.md"), "utf8");
    expect(changelog).toContain(`## ${version}`);
    expect(changelog).toContain("What a user notices.");
    expect(changelog.startsWith("# Changelog\n")).toBe(true);
  });

  it("is refused if the address of the repository is missing", () => {
    setRepository("");
    const { status, stderr } = release("publish");
    expect(status).toBe(1);
    expect(stderr).toContain("repository.url is empty");
  });

  it("is refused while changes wait for a version", () => {
    setRepository("https://example.org/cria.git");
    const { status, stderr } = release("publish");
    expect(status).toBe(1);
    expect(stderr).toContain("one.md");
  });
});
