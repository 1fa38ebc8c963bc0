import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { hasPrebuiltBins } from "../native/scripts/llama-paths.mjs";
import { describeTarget, targets } from "../native/scripts/targets.mjs";
import { describePrebuild, describeVision, listPlatformPackages, takePrebuilds } from "../scripts/pack.mjs";

// The addons that are published, and the workflows that build and check them. They run on machines that no test has.
const root = join(import.meta.dirname, "..");
const work = realpathSync(mkdtempSync(join(tmpdir(), "cria-prebuilds-")));
afterAll(() => rmSync(work, { recursive: true, force: true }));

interface Job {
  needs?: string | string[];
  uses?: string;
  if?: string;
  strategy?: { matrix: { include: { target: string; runner: string; devices?: string; untried?: boolean }[] } };
  steps?: { run?: string; uses?: string }[];
}
const { parse } = createRequire(join(root, "deploy", "package.json"))("yaml") as { parse(text: string): unknown };
const readWorkflow = (name: string) =>
  (parse(readFileSync(join(root, ".github", "workflows", `${name}.yml`), "utf8")) as { jobs: Record<string, Job> })
    .jobs;
const commands = (job: Job) => job.steps!.flatMap(({ run }) => run ?? []).join("\n");
const names = targets.map(({ name }) => name);

describe("the workflow that makes prebuilds", () => {
  const { build, pack, check } = readWorkflow("prebuilds") as Record<string, Job>;
  const matrix = (job: Job) => job.strategy!.matrix.include;

  it("builds and checks every platform", () => {
    expect(matrix(build!).map(({ target }) => target)).toEqual(names);
    expect(matrix(check!).map(({ target }) => target)).toEqual(names);
    expect(commands(build!)).toMatch(/scripts\/pack\.mjs --target \$\{\{ matrix\.target \}\} --out prebuilds$/m);
    expect(commands(pack!)).toContain("scripts/pack.mjs --prebuilds prebuilds --out tarballs");
  });

  it("checks each on a machine of its kind: the CPU everywhere, and Metal on the Mac", () => {
    const systems: Record<string, RegExp> = {
      "linux-x64": /^ubuntu-[\d.]+$/,
      "linux-arm64": /^ubuntu-[\d.]+-arm$/,
      "darwin-arm64": /^macos-\d+$/,
      "win32-x64": /^windows-\d+$/,
    };
    expect(Object.keys(systems)).toEqual(names);
    for (const { target, runner, devices, untried } of matrix(check!)) {
      expect(runner, target).toMatch(systems[target]!);
      expect(devices, target).toContain("--device cpu");
      // Both of these have their own llama.cpp, and nobody has run either.
      expect(untried ?? false, target).toBe(describeTarget(target).ownLibraries);
    }
    expect(matrix(check!).find(({ target }) => target === "darwin-arm64")!.devices).toContain("--untried metal");
    expect(commands(check!)).toMatch(/scripts\/check-prebuild\.mjs --tarballs tarballs \$\{\{ matrix\.devices \}\}/);
  });

  it("comes before a release, which takes the packages that it has checked", () => {
    const { prebuilds, release } = readWorkflow("release") as Record<string, Job>;
    expect(prebuilds!.uses).toBe("./.github/workflows/prebuilds.yml");
    expect(release!.needs).toContain("prebuilds");
    expect(release!.if).toContain("needs.prebuilds.result != 'failure'");
    expect(readFileSync(join(root, ".github", "workflows", "release.yml"), "utf8")).toContain(
      "publish: node scripts/release.mjs publish --prebuilds prebuilds",
    );
  });

  it.each(["prebuilds", "release"])("%s.yml runs programs that exist", (name) => {
    const text = readFileSync(join(root, ".github", "workflows", `${name}.yml`), "utf8");
    const programs = [...text.matchAll(/\bnode (scripts\/[\w./-]+\.mjs)/g)].map(([, file]) => file!);
    expect(programs.length).toBeGreaterThan(1);
    for (const file of programs) expect(existsSync(join(root, file)), file).toBe(true);
  });
});

describe("packages of platforms", () => {
  it("are two for each, and package managers take those of their machine only", () => {
    const packages = listPlatformPackages(names, "1.2.3");
    expect(Object.keys(packages)).toEqual(names.flatMap((name) => [`@cria/native-${name}`, `@cria/vision-${name}`]));
    for (const { name, platform, arch } of targets)
      for (const manifest of [describePrebuild(name), describeVision(name)]) {
        expect(manifest).toMatchObject({ os: [platform], cpu: [arch] });
        // Only Linux has several C libraries.
        expect(manifest.libc, name).toEqual(platform === "linux" ? ["glibc"] : undefined);
      }
  });

  it("have llama.cpp's libraries inside where no package has them", () => {
    const { optionalDependencies } = JSON.parse(readFileSync(join(root, "native", "package.json"), "utf8"));
    for (const { name, ownLibraries } of targets) {
      const needed = Object.keys(describePrebuild(name).dependencies ?? {});
      expect(needed, name).toEqual(ownLibraries ? [] : [`@node-llama-cpp/${name}`]);
      for (const library of needed) expect(optionalDependencies).toHaveProperty([library]);
      expect(hasPrebuiltBins(name), name).toBe(!ownLibraries);
    }
  });

  it("are published only all together", () => {
    const out = join(work, "out");
    mkdirSync(out);
    expect(() => takePrebuilds(work, out)).toThrow(/lacks cria-native-linux-x64-.*cria-vision-win32-x64-/);
    const { version } = JSON.parse(readFileSync(join(root, "native", "package.json"), "utf8"));
    const files = Object.keys(listPlatformPackages(names, version)).map(
      (name) => `${name.slice(1).replace("/", "-")}-${version}.tgz`,
    );
    for (const file of files) writeFileSync(join(work, file), file);
    expect(takePrebuilds(work, out).sort()).toEqual(files.map((file) => join(out, file)).sort());
    expect(readFileSync(join(out, files[0]!), "utf8")).toBe(files[0]);
    rmSync(join(work, files.at(-1)!));
    expect(() => takePrebuilds(work, out)).toThrow(files.at(-1));
  });

  it("of another name are refused", () => {
    expect(() => describeTarget("beos-x64")).toThrow(/linux-x64, linux-arm64, darwin-arm64, win32-x64/);
    expect(describeTarget("darwin-x64").ownLibraries).toBe(true);
  });
});

describe("the loader on other platforms", () => {
  const native = join(work, "loader", "node_modules", "@cria", "native");
  const load = (platform: string, arch: string) => {
    mkdirSync(native, { recursive: true });
    cpSync(join(root, "native", "index.cjs"), join(native, "index.cjs"));
    const program = `
      Object.defineProperty(process, "platform", { value: ${JSON.stringify(platform)} });
      Object.defineProperty(process, "arch", { value: ${JSON.stringify(arch)} });
      const { findVisionLibrary, listCandidates } = require(${JSON.stringify(join(native, "index.cjs"))});
      console.log(JSON.stringify({ addon: listCandidates().at(-1), vision: findVisionLibrary() }));`;
    const { CRIA_ADDON: _, CRIA_VISION: __, ...env } = process.env;
    const { stdout, stderr } = spawnSync(process.execPath, ["-e", program], { encoding: "utf8", env });
    expect(stderr).toBe("");
    return JSON.parse(stdout) as { addon: string; vision: string | null };
  };
  const libraries: Record<string, string> = {
    linux: "libcria-vision.so",
    darwin: "libcria-vision.dylib",
    win32: "cria-vision.dll",
  };

  it.each(targets)("finds the packages of $name beside it", ({ name, platform, arch }) => {
    const place = (kind: string, file: string) => {
      const folder = join(native, "..", `${kind}-${name}`);
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, file), "");
      return join(folder, file);
    };
    expect(load(platform, arch).vision).toBeNull();
    const addon = place("native", "cria.node");
    const vision = place("vision", libraries[platform]!);
    expect(load(platform, arch)).toEqual({ addon, vision });
    expect(describeVision(name).main).toBe(libraries[platform]);
  });
});
