// Results of llama.cpp's own mtmd and kernels for a picture with each family's tiny pair
// (packages/engine/src/testing/vision-pairs.ts): the prompt's layout and 24 greedy tokens. Compares it with
// packages/engine/fixtures/stock-vision.json, which the engine's tests compare themselves with, and writes
// stock-vision.json next to this file. Needs CMake, a compiler and a build of the engine; the first run compiles mtmd,
// about 2 minutes.
//   node scripts/nightly/stock-vision.mjs [--write]     --write records the fixture anew
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import {
  findLibrary,
  findPrebuiltBins,
  nativeRoot,
  readLlamaPin,
  unpackLlamaSource,
} from "../../native/scripts/llama-paths.mjs";
import {
  drawPicture,
  makeTinyModel,
  makeTinyProjector,
  pairPrompt,
  visionPairs,
} from "../../packages/engine/dist/testing.js";

const TOKENS = 24;
/** Further pictures, only for their layouts. */
const SIZES = ["91x33", "20x70", "12x12", "150x140"];
/** Between the best logit and the next: below, another CPU's last bits could choose another token. */
const LEAST_MARGIN = 4e-3;
/** Tolerance of logprobs between CPUs. */
const TOLERANCE = 2e-4;
const fixture = join(import.meta.dirname, "..", "..", "packages", "engine", "fixtures", "stock-vision.json");

function run(command, args) {
  const { status, signal, stdout, stderr } = spawnSync(command, args, { encoding: "utf8", maxBuffer: 1 << 26 });
  if (status !== 0) throw new Error(`${command} ended with ${signal ?? status}:\n${(stdout + stderr).slice(-3000)}`);
  return stdout;
}

/** The program's path, compiled where the sources or the release changed. */
function build(bins) {
  const folder = join(nativeRoot, "build-stock-vision");
  const paths = {
    LLAMA_SOURCE: unpackLlamaSource("all"),
    LLAMA_BINS: bins,
    LLAMA_LIBRARY: findLibrary(bins, "llama"),
    GGML_LIBRARY: findLibrary(bins, "ggml"),
    GGML_BASE_LIBRARY: findLibrary(bins, "ggml-base"),
  };
  const defines = Object.entries(paths).map(([name, path]) => `-D${name}=${path}`);
  run("cmake", ["-S", join(nativeRoot, "test", "stock-vision"), "-B", folder, ...defines]);
  run("cmake", ["--build", folder, "--parallel", "2"]);
  return join(folder, "stock_vision");
}

async function ask(program, bins, folder, { name, model, projector, width, height }) {
  const [modelPath, projectorPath, picture] = ["model.gguf", "mmproj.gguf", "picture.bmp"].map((f) => join(folder, f));
  await makeTinyModel(modelPath, model);
  await makeTinyProjector(projectorPath, projector);
  writeFileSync(picture, drawPicture(width, height));
  const prompt = pairPrompt.join("<__media__>");
  const answer = JSON.parse(run(program, [bins, modelPath, projectorPath, picture, prompt, String(TOKENS), ...SIZES]));
  if (answer.margin < LEAST_MARGIN)
    throw new Error(`${name}: a lead of ${answer.margin} is too small, choose another seed`);
  return answer;
}

/** The differences, in words; null without any. */
function compare(recorded, answer) {
  if (!recorded) return "is not recorded";
  for (const part of ["layout", "positions", "tokens", "sizes"])
    if (JSON.stringify(recorded[part]) !== JSON.stringify(answer[part])) return `other ${part}`;
  const worst = Math.max(...answer.logprobs.map((x, i) => Math.abs(x - recorded.logprobs[i])));
  return worst > TOLERANCE ? `logprobs differ by ${worst}` : null;
}

const started = performance.now();
const write = process.argv.includes("--write");
const bins = findPrebuiltBins();
const program = build(bins);
const folder = mkdtempSync(join(tmpdir(), "cria-stock-vision-"));
const answers = {};
try {
  for (const pair of visionPairs) answers[pair.name] = await ask(program, bins, folder, pair);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
if (write) {
  const lines = Object.entries(answers).map(
    ([name, answer]) => `    ${JSON.stringify(name)}: ${JSON.stringify(answer)}`,
  );
  const head = `"llamaPin": ${JSON.stringify(readLlamaPin())},\n  "script": "scripts/nightly/stock-vision.mjs --write"`;
  writeFileSync(fixture, `{\n  ${head},\n  "pairs": {\n${lines.join(",\n")}\n  }\n}\n`);
}
const recorded = JSON.parse(readFileSync(fixture, "utf8"));
const differences = visionPairs
  .map(({ name }) => ({ name, difference: compare(recorded.pairs[name], answers[name]) }))
  .filter(({ difference }) => difference);
const result = {
  date: new Date().toISOString().slice(0, 10),
  cpu: cpus()[0].model,
  llama_pin: readLlamaPin(),
  pairs: visionPairs.length,
  least_margin: Math.min(...Object.values(answers).map(({ margin }) => margin)),
  differences,
  seconds: Math.round((performance.now() - started) / 1000),
};
writeFileSync(join(import.meta.dirname, "stock-vision.json"), `${JSON.stringify(result, null, 2)}\n`);
console.log(result);
if (differences.length > 0) process.exitCode = 1;
