import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { describePrebuild, describeVision, listPrebuilds, packages } from "../scripts/pack.mjs";
import { listLinks, writePages } from "../scripts/publish-pages.mjs";
import { installPacked } from "./install-packed.js";

// That packed packages install and work is checked by scripts/nightly/packages.mjs; it needs a registry and minutes.
const root = join(import.meta.dirname, "..");
const readManifest = (folder: string) => JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"));

const listFiles = (path: string): string[] =>
  statSync(path).isDirectory() ? readdirSync(path).flatMap((name) => listFiles(join(path, name))) : [path];

/** Packages that are imported; the others only have programs. */
const libraries = packages.filter((folder) => readManifest(folder).exports !== undefined);

describe.each(libraries)("exports of %s", (folder) => {
  const manifest = readManifest(folder);

  it("publishes the workspace's exports, without the sources", () => {
    const published = Object.entries<Record<string, unknown> | string>(manifest.exports).flatMap(([path, entry]) => {
      if (typeof entry === "string") return [[path, entry]];
      const { "cria-source": source, ...rest } = entry;
      expect(source).toMatch(/^\.\/src\//);
      // Exports with only sources are for the tests of this repository.
      return Object.keys(rest).length > 0 ? [[path, rest]] : [];
    });
    expect(manifest.publishConfig.exports).toEqual(Object.fromEntries(published));
  });

  it("gives ESM and CommonJS their own files and types", () => {
    for (const entry of Object.values<Record<string, Record<string, string>>>(manifest.publishConfig.exports)) {
      if (typeof entry === "string") continue;
      const base = entry.import!.default!.replace(/\.js$/, "");
      const esm = { types: `${base}.d.ts`, default: `${base}.js` };
      expect(entry).toEqual({
        import: esm,
        "module-sync": esm,
        require: { types: `${base}.d.cts`, default: `${base}.cjs` },
      });
    }
  });
});

/** Dependencies of libraries that have to be one version exactly, and why. */
const pinned = new Map([
  // The sandboxes' walls and the snapshot of Python are made for one interpreter, and tested against it.
  ["pyodide", "sandbox"],
  ["quickjs-emscripten-core", "sandbox"],
  ["@jitl/quickjs-wasmfile-release-sync", "sandbox"],
  // The addon reads internal structs of exactly this llama.cpp (native/UPGRADING.md).
  ["@node-llama-cpp/linux-x64-cuda", "ABI"],
  ["@node-llama-cpp/linux-x64-vulkan", "ABI"],
  // From 3.4 on they need Node 22, by @nats-io/nuid; and they must be of one version.
  ["@nats-io/transport-node", "Node 20"],
  ["@nats-io/jetstream", "Node 20"],
  ["@nats-io/kv", "Node 20"],
  ["@nats-io/obj", "Node 20"],
]);

describe.each(packages)("manifest of %s", (folder) => {
  const manifest = readManifest(folder);

  it("names every package that it needs, by one version for all", () => {
    const { version } = readManifest("native");
    expect(manifest.version).toBe(version);
    expect(manifest.private).toBeUndefined();
    for (const [name, range] of Object.entries<string>(manifest.dependencies))
      if (/^(@cria\/|cria$)/.test(name)) expect(range, name).toBe("workspace:*");
  });

  it("takes ranges, so that a user has one zod; only packages that must match exactly are pinned", () => {
    const { dependencies, optionalDependencies, peerDependencies } = manifest;
    const needed = Object.entries<string>({ ...dependencies, ...optionalDependencies, ...peerDependencies });
    for (const [name, range] of needed) {
      if (range.startsWith("workspace:")) continue;
      expect(range, name).toMatch(pinned.has(name) ? /^\d+\.\d+\.\d+$/ : /^\^\d+\.\d+\.\d+$/);
    }
    expect(manifest.keywords?.length).toBeGreaterThan(2);
  });

  it("has pages whose links lead into its tarball", () => {
    const out = mkdtempSync(join(tmpdir(), "cria-pages-"));
    try {
      for (const file of manifest.files.filter((name: string) => existsSync(join(root, folder, name))))
        cpSync(join(root, folder, file), join(out, file), { recursive: true });
      writePages(folder, out);
      for (const page of listFiles(out).filter((file) => file.endsWith(".md") && !file.includes("/dist/")))
        for (const { file } of listLinks(readFileSync(page, "utf8")).filter(({ file }) => file !== "")) {
          const target = join(dirname(page), file);
          expect(target.startsWith(`${out}/`) && existsSync(target), `${page}: ${file}`).toBe(true);
        }
    } finally {
      rmSync(out, { recursive: true });
    }
  });

  it("brings its README, and the repository's LICENSE", () => {
    expect(manifest.files).toContain("README.md");
    // pnpm packs the repository's LICENSE unless the path of any other file looks like one.
    const files = manifest.files.flatMap((name: string) => {
      const path = join(root, folder, name);
      // Only the tarball has docs.
      return existsSync(path) ? listFiles(path) : [];
    });
    expect(files.filter((path: string) => /licen[cs]e/i.test(path.slice(root.length)))).toEqual([]);
  });
});

describe("installed in an empty folder", () => {
  const work = mkdtempSync(join(tmpdir(), "cria-installed-"));
  beforeAll(() => installPacked(work));
  afterAll(() => rmSync(work, { recursive: true, force: true }));

  const run = (command: string, args: string[], cwd = work) => {
    const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: "utf8", timeout: 240_000 });
    expect(status, stdout + stderr).toBe(0);
    return stdout;
  };
  const bin = (name: string) => join(work, "node_modules", ".bin", name);

  it("cria demo finds its policy and its example", () => {
    const few = ["data.val_max_samples=4", "data.train_batch_size=2", "trainer.threads=1"];
    const summary = JSON.parse(run(bin("cria"), ["demo", "--json", "--steps=1", ...few]));
    expect(summary.steps).toBe(1);
    expect(existsSync(join(work, "runs", "demo", "adapter.gguf"))).toBe(true);
  });

  it("the page of cria on npm is the repository's README", () => {
    const outline = (path: string) => {
      const text = readFileSync(path, "utf8");
      return { begin: text.slice(0, text.indexOf("[")), sections: text.match(/^#+ .+$/gm) };
    };
    expect(outline(join(work, "node_modules", "cria", "README.md"))).toEqual(outline(join(root, "README.md")));
  });

  it("the help names the folder of the pages", () => {
    const docs = /Pages about all of it: (.*?) \(/s.exec(run(bin("cria"), ["--help"]))![1]!;
    expect(docs.replace(/\s+/g, "")).toBe(join(work, "node_modules", "cria", "docs"));
  });

  it("the README's imports of cria train, in ESM and in CommonJS", () => {
    const program = `
      const calculator = tool({
        name: "calculator",
        description: "Subtracts.",
        inputSchema: z.object({ expression: z.string() }),
        execute: ({ expression }) => String(expression.split("-").reduce((a, b) => a - b)),
      });
      const task = defineTask({
        rows: [{ question: "Emma has 86 stamps and loses 58. How many stamps are left?", truth: "28" }],
        system: "You solve problems. Use the tool to compute, then answer with ####.",
        tools: [calculator],
        reward: ({ answer, row }) => answer === row.truth,
        maxPromptLength: 120,
        maxResponseLength: 128,
      });
      const steps = [];
      const run = train({ model: embeddedPolicy, task, steps: 1, batchSize: 1, n: 2, threads: 1 });
      (async () => {
        for await (const { step } of run) steps.push(step);
        console.log(JSON.stringify({ steps, adapter: (await run).adapter }));
      })();`;
    const names = "{ defineTask, embeddedPolicy, tool, train }";
    writeFileSync(join(work, "own.mjs"), `import ${names} from "cria"; import { z } from "zod";${program}`);
    writeFileSync(join(work, "own.cjs"), `const ${names} = require("cria"); const { z } = require("zod");${program}`);
    for (const file of ["own.mjs", "own.cjs"]) {
      const { steps, adapter } = JSON.parse(run(process.execPath, [file]));
      expect(steps).toEqual([1]);
      expect(existsSync(join(work, adapter))).toBe(true);
    }
  });

  it("npm create cria passes its options on; tsc and npm run check find nothing wrong there", () => {
    const { name, files } = JSON.parse(run(bin("create-cria"), ["my-task", "--json"]));
    expect(name).toBe("my-task");
    expect(files).toContain("models/cria-tiny.gguf");
    const task = join(work, "my-task");
    run(bin("tsc"), [], task);
    const said = run("npm", ["run", "check"], task);
    expect(said).toMatch(/tool calculator: ok[\s\S]*interaction my-task: ok/);
  });
});

describe("in the repository", () => {
  const task = join(root, ".cache", `task-${process.pid}`);
  afterAll(() => rmSync(task, { recursive: true, force: true }));

  it("tsc finds nothing wrong in the files of cria init, without an installation", () => {
    const run = (args: string[], cwd: string) => {
      const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd, encoding: "utf8", timeout: 240_000 });
      expect(status, stdout + stderr).toBe(0);
    };
    run([join(root, "apps", "trainer", "bin", "cria.mjs"), "init", task], root);
    run([join(root, "node_modules", "typescript", "bin", "tsc")], task);
  });
});

// That it compiles is tests/compilers.test.ts's, that it runs scripts/nightly/arm64.mjs's.
describe.runIf(process.platform === "linux")("the ready-made addon of arm64 Linux", () => {
  const pathTo = (...programs: string[]) => {
    const bin = mkdtempSync(join(tmpdir(), "cria-bin-"));
    for (const name of programs) writeFileSync(join(bin, name), "#!/bin/sh\necho 12\n", { mode: 0o755 });
    return bin;
  };
  const listWith = (...programs: string[]) => {
    const warnings: string[] = [];
    vi.stubEnv("PATH", pathTo(...programs));
    const list = listPrebuilds((text) => warnings.push(text));
    vi.unstubAllEnvs();
    return { list, warnings };
  };

  it("is a package for such machines, with llama.cpp's libraries for them", () => {
    const manifest = describePrebuild("linux-arm64");
    const { optionalDependencies, version } = readManifest("native");
    expect(manifest).toMatchObject({ name: "@cria/native-linux-arm64", version, os: ["linux"], cpu: ["arm64"] });
    const libraries = "@node-llama-cpp/linux-arm64";
    expect(manifest.dependencies).toEqual({ [libraries]: optionalDependencies[libraries] });
  });

  it("comes with a library for images, which runs on the libraries of the addon", () => {
    const { version } = readManifest("native");
    const manifest = describeVision("linux-arm64");
    expect(manifest).toMatchObject({ name: "@cria/vision-linux-arm64", version, os: ["linux"], cpu: ["arm64"] });
    expect(manifest).not.toHaveProperty("dependencies");
    expect(manifest.main).toBe("libcria-vision.so");
  });

  it.skipIf(process.arch === "arm64")("is packed where its cross compiler is; else a line says why not", () => {
    expect(listWith("aarch64-linux-gnu-g++")).toEqual({ list: ["linux-x64", "linux-arm64"], warnings: [] });
    const { list, warnings } = listWith();
    expect(list).toEqual(["linux-x64"]);
    expect(warnings).toEqual([expect.stringMatching(/not packed: .* needs aarch64-linux-gnu-g\+\+ .*apt-get install/)]);
  });
});

describe("@cria/native without an addon", () => {
  const work = mkdtempSync(join(tmpdir(), "cria-native-"));
  const native = join(work, "native");
  const bin = join(work, "bin");
  beforeAll(() => {
    for (const name of ["index.cjs", "index.mjs", "package.json", "scripts"])
      cpSync(join(root, "native", name), join(native, name), { recursive: true });
    mkdirSync(bin);
    symlinkSync(process.execPath, join(bin, "node"));
  });
  afterAll(() => rmSync(work, { recursive: true, force: true }));

  const run = (args: string[], env: Record<string, string> = {}) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, args, {
      cwd: native,
      env: { PATH: bin, ...env },
      encoding: "utf8",
    });
    return { status, output: `${stdout}${stderr}` };
  };

  it("loading lists the tried files and a remedy", () => {
    const { status, output } = run(["-e", 'require("./index.cjs").loadAddon()']);
    expect(status).not.toBe(0);
    expect(output).toContain(`${join(native, "build", "Release", "cria.node")}: not there`);
    expect(output).toContain(`@cria/native-${process.platform}-${process.arch}: not installed`);
    expect(output).toContain(`node ${join(native, "scripts", "build.mjs")}`);
    expect(output).toContain("pnpm approve-builds");
  });

  it("installing without a compiler fails, with the missing parts and a remedy", () => {
    const { status, output } = run(["scripts/install.mjs"]);
    expect(status).toBe(1);
    expect(output).toContain(
      "this machine lacks CMake, a C++17 compiler (looked for c++, g++, clang++), make or ninja.",
    );
    expect(output).toContain("apt-get install g++ make cmake");
    expect(output).toContain("CRIA_SKIP_BUILD=1");
  });

  it("installing goes on without the engine where that is wanted", () => {
    expect(run(["scripts/install.mjs"], { CRIA_SKIP_BUILD: "1" })).toEqual({ status: 0, output: "" });
  });

  it("installing builds nothing where an addon loads", () => {
    const addon = join(work, "addon.cjs");
    writeFileSync(addon, "exports.runtimeInfo = () => ({});");
    expect(run(["scripts/install.mjs"], { CRIA_ADDON: addon })).toEqual({ status: 0, output: "" });
  });
});
