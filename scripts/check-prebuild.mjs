// Installs packed packages in an empty folder, as a user does, and checks there that each device computes the embedded
// policy rightly (cria check-model). .github/workflows/prebuilds.yml runs it on every platform that prebuilds are made for.
//
//   node scripts/check-prebuild.mjs --tarballs <folder> [--device cpu ...] [--untried metal ...] [--out report.json]
//
// The report has what `cria doctor` finds, and the findings of each device. The exit code is 1 if a `--device` falls short.
// An `--untried` one is checked and reported too, and fails nothing: nobody has run Cria on it yet.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { startRegistry } from "./nightly/packages/registry.mjs";
import { npmProgram, packageProgram } from "./programs.mjs";

const { values } = parseArgs({
  options: {
    tarballs: { type: "string" },
    device: { type: "string", multiple: true, default: ["cpu"] },
    untried: { type: "string", multiple: true, default: [] },
    out: { type: "string" },
  },
});
if (values.tarballs === undefined)
  throw new Error("--tarballs: expected the folder of packed packages, received nothing");
const { tarballs: folder } = values;
const platform = `${process.platform}-${process.arch}`;
const work = mkdtempSync(join(tmpdir(), "cria-prebuild-"));

/**
 * `{ status, stdout }`; what a program says otherwise is shown. Not synchronously: the registry is in this process.
 * @param {string[]} command
 */
async function run([command, ...args]) {
  const child = spawn(command, args, { cwd: work, stdio: ["ignore", "pipe", "inherit"] });
  let stdout = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    stdout += text;
  });
  const [status] = await once(child, "close");
  return { status, stdout };
}

/** @throws Error where the addon was not taken ready-made. */
async function install() {
  const tarballs = readdirSync(folder)
    .filter((name) => name.endsWith(".tgz"))
    .map((name) => resolve(folder, name));
  const registry = await startRegistry(tarballs);
  try {
    writeFileSync(join(work, "package.json"), JSON.stringify({ name: "prebuild", private: true, version: "1.0.0" }));
    writeFileSync(join(work, ".npmrc"), `@cria:registry=${registry.url}\n`);
    const { status } = await run(npmProgram("npm", "install", "--no-audit", "--no-fund", registry.tarballUrl("cria")));
    if (status !== 0) throw new Error(`npm install ended with ${status}`);
  } finally {
    registry.close();
  }
  const ours = join(work, "node_modules", "@cria");
  if (!existsSync(join(ours, `native-${platform}`, "cria.node")))
    throw new Error(`@cria/native-${platform} was not installed`);
  if (existsSync(join(ours, "native", "build"))) throw new Error("the addon was built, not taken ready-made");
}

const cria = (...args) => run(packageProgram(work, "cria", "cria").concat(args));

async function checkDevice(device) {
  const policy = join(work, "node_modules", "cria", "dist", "assets", "models", "cria-tiny.gguf");
  const { status, stdout } = await cria("check-model", policy, "--json", "--device", device);
  const isReport = stdout.trimStart().startsWith("{");
  const report = { device, status, ...(isReport ? JSON.parse(stdout) : { said: stdout.trim() }) };
  console.log(`${platform}, ${device}: ${status === 0 ? "nothing falls short" : `exit code ${status}`}`);
  for (const { findings } of report.devices ?? [])
    for (const { verdict, name, found } of findings) console.log(`  ${verdict.padEnd(14)}${name.padEnd(28)}${found}`);
  if (!isReport) console.log(stdout);
  return report;
}

try {
  await install();
  const doctor = await cria("doctor", "--json");
  const devices = [];
  for (const device of [...values.device, ...values.untried]) devices.push(await checkDevice(device));
  const report = { platform, node: process.version, doctor: JSON.parse(doctor.stdout), devices };
  if (values.out) writeFileSync(values.out, `${JSON.stringify(report, null, 2)}\n`);
  const failed = devices.filter(({ device, status }) => status !== 0 && values.device.includes(device));
  process.exitCode = failed.length > 0 ? 1 : 0;
} finally {
  rmSync(work, { recursive: true, force: true, maxRetries: 5 });
}
