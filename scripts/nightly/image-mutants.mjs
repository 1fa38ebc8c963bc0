// Damages 1,000 pictures and 500 projectors. Each picture must be decoded or refused with an error. Each projector is
// tried like a file that is new on a machine, in a child process, which it may end. Those that pass are used: opened,
// laid out and encoded with, which may refuse, but never end the process or hang. The decoder also reads the pictures
// compiled with AddressSanitizer and UndefinedBehaviorSanitizer. Writes image-mutants.json and image-mutants.md beside
// this file. Needs a build; about 3 minutes.
//   node scripts/nightly/image-mutants.mjs [pictures] [projectors] [first seed]
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { unpackLlamaSource } from "../../native/scripts/llama-paths.mjs";

const root = join(import.meta.dirname, "..", "..");
const native = createRequire(import.meta.url)(join(root, "native", "index.cjs"));
const HANG_S = 60;
/** Memory of a child: a mutant that makes llama.cpp allocate without bound must not take it from other programs. */
const MEMORY_KB = 3 * 2 ** 20;

const pictures = JSON.parse(
  readFileSync(join(root, "packages", "engine", "fixtures", "pictures", "pictures.json"), "utf8"),
).map(({ file }) => Buffer.from(file, "base64"));

const testing = () => import(join(root, "packages", "engine", "dist", "testing.js"));
const engine = () => import(join(root, "packages", "engine", "dist", "index.js"));

/** The damaged picture of a seed. */
function makePicture({ mutateBytes }, seed) {
  const file = pictures[seed % pictures.length];
  return mutateBytes(file, seed, seed % 2 ? 100 : file.length);
}

/** Writes the damaged projector of a seed; gives its path and that of the model that the sound one is for. */
async function writeProjector({ describeTinyProjector, mutateBytes, mutateProjector, visionPairs }, folder, seed) {
  const { writeGguf } = await engine();
  const index = seed % visionPairs.length;
  const content = describeTinyProjector(visionPairs[index].projector);
  const path = join(folder, `mutant-${seed}.gguf`);
  const isContent = Math.floor(seed / visionPairs.length) % 4 > 0;
  await writeGguf(path, isContent ? mutateProjector(content, seed) : content);
  if (!isContent) {
    const weights = content.tensors.reduce((sum, { data }) => sum + data.byteLength, 0);
    const file = readFileSync(path);
    writeFileSync(path, mutateBytes(file, seed, Math.max(64, file.length - weights)));
  }
  return { path, model: join(folder, `model-${index}.gguf`) };
}

const options = (path) => ({ library: native.findVisionLibrary(), path, threads: 1, minTokens: 0, maxTokens: 0 });

/** A child's work for each seed; returns its outcome. */
const works = {
  async picture(folder) {
    const kit = await testing();
    const addon = native.loadAddon();
    const model = await addon.loadModel({ path: join(folder, "model-0.gguf"), threads: 1, maxSequences: 1 });
    const projector = await model.openProjector(options(join(folder, "sound.gguf")));
    return (seed) => projector.decode(makePicture(kit, seed), 2 ** 20, 1 + (seed % 8)).then(() => "decoded");
  },
  async trial(folder) {
    const kit = await testing();
    const addon = native.loadAddon();
    return async (seed) => {
      const { path, model } = await writeProjector(kit, folder, seed);
      await addon.tryProjector(model, options(path));
      return "passed";
    };
  },
  async use(folder) {
    const kit = await testing();
    const addon = native.loadAddon();
    const sizes = [60, 40, 300, 20, 20, 300, 200, 150, 3, 3, 91, 33];
    return async (seed) => {
      const { path, model: modelPath } = await writeProjector(kit, folder, seed);
      const model = await addon.loadModel({ path: modelPath, threads: 1, maxSequences: 1 });
      const projector = await model.openProjector(options(path));
      let refused = 0;
      try {
        for (let i = 0; i < sizes.length; i += 2) {
          const file = kit.drawPicture(sizes[i], sizes[i + 1]);
          await projector.encode(file, 2 ** 20, 1).catch((error) => {
            if (!error.code) throw error;
            refused++;
          });
        }
        for (let i = 1; i < 30; i++) {
          try {
            projector.layout(i * 37, 4096 - i * 131);
          } catch (error) {
            if (!error.code) throw error;
            refused++;
          }
        }
      } finally {
        await projector.dispose();
        await model.dispose();
      }
      return refused ? "works, refuses some sizes" : "works";
    };
  },
};

/** Child: seeds come in, one JSON line goes out before and after each. */
async function work(name, folder) {
  const run = await works[name](folder);
  for await (const line of createInterface({ input: process.stdin })) {
    const seed = Number(line);
    console.log(JSON.stringify({ seed, begins: true }));
    const outcome = await run(seed).catch((error) => (error.code ? "refused" : `untyped error: ${error.message}`));
    console.log(JSON.stringify({ seed, outcome }));
  }
}

/**
 * Gives seeds to a child, and to another one when it ends; returns the outcome of each seed, and the last output of
 * children that ended.
 */
async function runSeeds(name, folder, seeds) {
  const outcomes = new Map();
  const waiting = [...seeds];
  while (waiting.length > 0) {
    const program = [process.execPath, fileURLToPath(import.meta.url), "--child", name, folder];
    const child = spawn("sh", ["-c", `ulimit -d ${MEMORY_KB}; exec "$@"`, "sh", ...program], {
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...process.env, GGML_NO_BACKTRACE: "1" },
    });
    let errors = "";
    child.stderr.on("data", (text) => {
      errors = (errors + text).slice(-1000);
    });
    const ended = new Promise((resolve) => child.once("close", (code, signal) => resolve(signal ?? code)));
    let current = null;
    let timer;
    child.stdin.on("error", () => {});
    child.stdin.write(`${waiting[0]}\n`);
    for await (const line of createInterface({ input: child.stdout })) {
      const report = JSON.parse(line);
      clearTimeout(timer);
      if (report.begins) {
        current = report.seed;
        timer = setTimeout(() => child.kill("SIGKILL"), HANG_S * 1000);
        continue;
      }
      current = null;
      outcomes.set(report.seed, { outcome: report.outcome });
      waiting.shift();
      if (outcomes.size % 100 === 0) console.log(`${name}: ${outcomes.size} of ${seeds.length}`);
      if (waiting.length > 0) child.stdin.write(`${waiting[0]}\n`);
      else child.stdin.end();
    }
    clearTimeout(timer);
    const end = await ended;
    if (current !== null) {
      outcomes.set(current, { outcome: "ended the process, or hung", end, errors: errors.trim() });
      waiting.shift();
    } else if (waiting.length > 0) throw new Error(`the child "${name}" ended with ${end}: ${errors}`);
  }
  return outcomes;
}

/** Runs only the decoder, with sanitizers, over the same pictures. */
async function decodeSanitized(folder, seeds) {
  const kit = await testing();
  const files = join(folder, "pictures");
  mkdirSync(files);
  for (const seed of seeds) writeFileSync(join(files, String(seed)), makePicture(kit, seed));
  const program = join(folder, "decode_pictures");
  const source = unpackLlamaSource("vision");
  const vision = join(root, "native", "vision");
  const includes = ["vendor", "ggml/include"].map((part) => `-isystem${join(source, part)}`);
  const flags = [
    "-std=c++17",
    "-g",
    "-O1",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-D_GLIBCXX_ASSERTIONS",
  ];
  const sources = [join(vision, "picture.cc"), join(vision, "tests", "decode_pictures.cc")];
  execFileSync(process.env.CXX ?? "c++", [...flags, ...includes, `-I${vision}`, ...sources, "-o", program]);
  const paths = seeds.map((seed) => join(files, String(seed)));
  const { status, signal, stdout, stderr } = spawnSync(program, paths, { encoding: "utf8", maxBuffer: 2 ** 26 });
  if (status === 0) return stdout.trim();
  throw new Error(`the decoder with sanitizers ended with ${signal ?? status}\n${stderr.slice(0, 3000)}`);
}

function count(outcomes) {
  const counts = {};
  for (const { outcome } of outcomes.values()) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}

async function run() {
  const [pictureCount = 1000, projectorCount = 500, first = 1] = process.argv.slice(2).map(Number);
  const started = performance.now();
  const folder = mkdtempSync(join(tmpdir(), "cria-image-mutants-"));
  const range = (length) => Array.from({ length }, (_, i) => first + i);
  try {
    const { makeTinyModel, makeTinyProjector, visionPairs } = await testing();
    for (const [i, { model }] of visionPairs.entries()) await makeTinyModel(join(folder, `model-${i}.gguf`), model);
    await makeTinyProjector(join(folder, "sound.gguf"), visionPairs[0].projector);
    const decoded = await runSeeds("picture", folder, range(pictureCount));
    const sanitized = await decodeSanitized(folder, range(pictureCount));
    const tried = await runSeeds("trial", folder, range(projectorCount));
    const passed = [...tried].filter(([, { outcome }]) => outcome === "passed").map(([seed]) => seed);
    const used = await runSeeds("use", folder, passed);
    report({ pictureCount, projectorCount, first, started, decoded, sanitized, tried, used });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function report({ pictureCount, projectorCount, first, started, decoded, sanitized, tried, used }) {
  const bad = [...decoded, ...used, ...tried]
    .filter(
      ([seed, { outcome, end }]) =>
        outcome.startsWith("untyped") || (end !== undefined && tried.get(seed)?.end !== end),
    )
    .map(([seed, entry]) => ({ seed, ...entry }));
  const endedTrials = [...tried]
    .filter(([, { end }]) => end !== undefined)
    .map(([seed, entry]) => ({ seed, ...entry }));
  const result = {
    date: new Date().toISOString().slice(0, 10),
    cpu: cpus()[0].model,
    node: process.version,
    first_seed: first,
    pictures: { mutants: pictureCount, ...count(decoded), sanitized },
    projectors: { mutants: projectorCount, trials: count(tried), used: count(used) },
    bad,
    ended_trials: endedTrials,
    seconds: Math.round((performance.now() - started) / 1000),
  };
  const here = (name) => join(import.meta.dirname, name);
  writeFileSync(here("image-mutants.json"), `${JSON.stringify(result, null, 2)}\n`);
  const rows = [
    ...Object.entries(count(decoded)).map(([outcome, n]) => [`picture: ${outcome}`, n]),
    ...Object.entries(count(tried)).map(([outcome, n]) => [`projector, trial in a child: ${outcome}`, n]),
    ...Object.entries(count(used)).map(([outcome, n]) => [`projector that passed, in use: ${outcome}`, n]),
    ["ended the process, or hung, where it may not", bad.length],
  ];
  const width = Math.max(...rows.map(([text]) => text.length));
  const text = [
    "# Damaged pictures and projectors",
    "",
    `${pictureCount} mutants of pictures, ${projectorCount} of projectors of every tested family. ${result.date}, ${result.cpu}, Node ${result.node}, ${result.seconds} s.`,
    `The decoder with AddressSanitizer and UndefinedBehaviorSanitizer over the same pictures: ${sanitized}.`,
    "",
    `| ${"outcome".padEnd(width)} | mutants |`,
    `| ${"-".repeat(width)} | ------: |`,
    ...rows.map(([outcome, n]) => `| ${outcome.padEnd(width)} | ${String(n).padStart(7)} |`),
    "",
    "Again: `node scripts/nightly/image-mutants.mjs`.",
  ];
  writeFileSync(here("image-mutants.md"), `${text.join("\n")}\n`);
  console.log(text.join("\n"));
  if (bad.length > 0) {
    console.log(bad);
    process.exitCode = 1;
  }
}

const [flag, name, folder] = process.argv.slice(2);
await (flag === "--child" ? work(name, folder) : run());
