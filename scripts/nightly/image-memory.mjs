// Measures the memory of encoding one picture, and compares it with the engine's estimate: projectors of published
// sizes (16 heads) and random weights, in two of their layers; one of Qwen2.5-VL's uses windowed attention. Memory does
// not grow with layers. Each picture has a separate process: high-water marks never fall.
//
//   node --conditions=cria-source --import tsx scripts/nightly/image-memory.mjs [--only Qwen2.5-VL:1920x1080] [--out scripts/nightly/image-memory]
//
// With --out it writes <out>.json. The exit code is 1 when an estimate is below the measured value, or more than twice
// it.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { loadImage } from "../../packages/core/src/index.ts";
import { estimateEncoding } from "../../packages/engine/src/images/encoding-memory.ts";
import { loadModel, readGguf, readTowerShape } from "../../packages/engine/src/internal.ts";
import { drawPicture, makeTinyModel, makeTinyProjector, visionPairs } from "../../packages/engine/src/testing/index.ts";

const pictures = {
  "Qwen2.5-VL": ["448x448", "896x896", "1920x1080"],
  "Qwen3-VL": ["1024x1024"],
  Pixtral: ["1024x1024"],
};
const towers = {
  "Qwen2.5-VL": { embedding: 1280, feedForward: 3420, patchSize: 14 },
  "Qwen3-VL": { embedding: 1152, feedForward: 4304, patchSize: 16, imageSize: 768 },
  Pixtral: { embedding: 1024, feedForward: 4096, patchSize: 16, imageSize: 1024 },
};
const { values } = parseArgs({
  options: {
    only: { type: "string", multiple: true },
    out: { type: "string" },
    child: { type: "string" },
    folder: { type: "string" },
  },
});
const folder = values.folder ?? mkdtempSync(join(tmpdir(), "cria-image-memory-"));
const pathsOf = (name) => ({ path: join(folder, `${name}.gguf`), mmproj: join(folder, `${name}.mmproj.gguf`) });

if (values.child) {
  const [name, size] = values.child.split(":");
  const [width, height] = size.split("x").map(Number);
  const { path, mmproj } = pathsOf(name);
  const image = await loadImage({ bytes: drawPicture(width, height) });
  const model = await loadModel({ path, mmproj, contextSize: 8192, maxSequences: 1 });
  const { images } = model;
  if (!images) throw new Error(`${mmproj}: the model takes no images`);
  const tokens = images.countTokens(image);
  const before = process.memoryUsage.rss();
  const cpu = process.cpuUsage();
  await images.prepare(image);
  const { user, system } = process.cpuUsage(cpu);
  const measured = process.resourceUsage().maxRSS * 1024 - before;
  const estimated = estimateEncoding(readTowerShape(await readGguf(mmproj)), tokens, width * height);
  console.log(JSON.stringify({ tokens, measured, estimated, cpuSeconds: (user + system) / 1e6 }));
  await model.dispose();
} else {
  const all = Object.entries(pictures).flatMap(([name, sizes]) => sizes.map((size) => `${name}:${size}`));
  const mega = (bytes) => `${(bytes / 2 ** 20).toFixed(0)} MiB`;
  const rows = [];
  for (const what of values.only ?? all) {
    const [name] = what.split(":");
    const { path, mmproj } = pathsOf(name);
    const pair = visionPairs.find((one) => one.name === name);
    if (!pair) throw new Error(`--only ${what}: no such pair`);
    const { model, projector } = pair;
    await makeTinyModel(path, model);
    await makeTinyProjector(mmproj, { ...projector, ...towers[name], heads: 16 });
    const args = [...process.execArgv, process.argv[1], "--child", what, "--folder", folder];
    const row = { what, ...JSON.parse(execFileSync(process.execPath, args, { encoding: "utf8" })) };
    const { tokens, measured, estimated, cpuSeconds } = row;
    console.log(
      `${what}: ${tokens} tokens, ${mega(measured)} measured, ${mega(estimated)} estimated, ${cpuSeconds.toFixed(1)} CPU s`,
    );
    rows.push(row);
  }
  if (values.out) writeFileSync(`${values.out}.json`, `${JSON.stringify({ cpu: cpus()[0].model, rows }, null, 2)}\n`);
  rmSync(folder, { recursive: true });
  process.exitCode = rows.some(({ measured, estimated }) => estimated < measured || estimated > 2 * measured) ? 1 : 0;
}
