// Gathers the requirements of run.sh in a folder, for a CUDA machine without network and without Node; about 45 MB.
//   node benchmarks/gpu/prepare.mjs FOLDER
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { nativeRoot, readHeaderVersions, unpackLlamaSource } from "../../native/scripts/llama-paths.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const [target] = process.argv.slice(2);
if (!target) {
  console.error("usage: node benchmarks/gpu/prepare.mjs FOLDER");
  process.exit(1);
}
const folder = resolve(target);
const fromNative = createRequire(join(nativeRoot, "package.json"));
const staging = mkdtempSync(join(tmpdir(), "cria-gpu-"));
const pack = (name, cwd, paths) =>
  execFileSync("tar", ["-C", cwd, "-cJf", join(folder, name), ...paths], { env: { ...process.env, XZ_OPT: "-2 -T0" } });

/** Bundles measure.ts and its imports into one file: the target machine has no node_modules. */
async function bundleMeasure(output) {
  const fromRoot = createRequire(join(here, "..", "..", "package.json"));
  const { build } = createRequire(fromRoot.resolve("tsup"))("esbuild");
  await build({
    entryPoints: [join(here, "measure.ts")],
    outfile: output,
    bundle: true,
    platform: "node",
    target: "node20",
    format: "esm",
    conditions: ["cria-source"],
    // The addon's loader is CommonJS.
    banner: {
      js: 'import { createRequire as makeRequire } from "node:module";\nconst require = makeRequire(import.meta.url), __dirname = import.meta.dirname;',
    },
    logLevel: "warning",
  });
}

/** The source that the addon is written for, without tests and tools. */
function packLlama() {
  let root = dirname(fromNative.resolve("node-llama-cpp"));
  while (!readdirSync(root).includes("package.json") || !readdirSync(root).includes("llama")) root = dirname(root);
  const source = join(staging, "llama.cpp");
  const git = (...args) => execFileSync("git", args, { stdio: ["ignore", "ignore", "inherit"] });
  git("clone", "--quiet", "--no-checkout", join(root, "llama", "gitRelease.bundle"), source);
  git(
    "-C",
    source,
    "checkout",
    "--quiet",
    "HEAD",
    "--",
    "CMakeLists.txt",
    "cmake",
    "include",
    "src",
    "ggml",
    "LICENSE",
  );
  rmSync(join(source, ".git"), { recursive: true });
  pack("llama.tar.xz", staging, ["llama.cpp"]);
}

mkdirSync(folder, { recursive: true });
try {
  const app = join(staging, "cria");
  for (const name of ["src", "include", "kernels", "CMakeLists.txt"])
    cpSync(join(nativeRoot, name), join(app, "native", name), { recursive: true });
  cpSync(dirname(fromNative.resolve("node-addon-api/package.json")), join(app, "node-addon-api"), { recursive: true });
  cpSync(join(dirname(fromNative.resolve("node-api-headers/package.json")), "include"), join(app, "node-api"), {
    recursive: true,
  });
  for (const name of ["peer.py", "table.py", "cases.json"]) cpSync(join(here, name), join(app, name));
  await bundleMeasure(join(app, "measure.mjs"));
  const { llama, ggml } = readHeaderVersions(unpackLlamaSource("headers"));
  writeFileSync(join(app, "versions.sh"), `LLAMA_RELEASE=${llama}\nGGML_RELEASE=${ggml}\n`);
  pack("cria.tar.xz", staging, ["cria"]);
  packLlama();
  cpSync(process.execPath, join(staging, "node"));
  execFileSync("strip", [join(staging, "node")]);
  pack("node.tar.xz", staging, ["node"]);
  cpSync(join(here, "run.sh"), join(folder, "run.sh"));
} finally {
  rmSync(staging, { recursive: true, force: true });
}
for (const name of readdirSync(folder))
  console.log(`${join(folder, name)}: ${(statSync(join(folder, name)).size / 1e6).toFixed(1)} MB`);
