import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { findBackendFolder } from "./backends.js";
import { TinyModels, textArchitectures } from "./testing/index.js";

// Vulkan on a machine without GPU, by Mesa's driver for CPUs. Computing compiles shaders for minutes, which
// scripts/nightly/vulkan.mjs does; here models are loaded, which asks the device for every operation of a training step.
const drivers = "/usr/share/vulkan/icd.d";
const lavapipe = existsSync(drivers) ? readdirSync(drivers).find((name) => /^lvp_icd.*\.json$/.test(name)) : undefined;
const require = createRequire(import.meta.url);
const bins = findBackendFolder("vulkan");

const models = new TinyModels();
afterAll(() => models.cleanUp());

/** Runs a program in a process with this driver only: backends stay loaded, and the environment is read at the start. */
function run(program: string, environment: NodeJS.ProcessEnv): unknown {
  const head = `const addon = require(${JSON.stringify(require.resolve("@cria/native"))}).loadAddon();
    const load = () => addon.loadBackend({ name: "vulkan", folder: ${JSON.stringify(bins)}, search: [] });`;
  const { GGML_VK_VISIBLE_DEVICES: _, ...inherited } = process.env;
  const env = { ...inherited, VK_ICD_FILENAMES: join(drivers, lavapipe ?? "none"), ...environment };
  const { stdout, stderr } = spawnSync(process.execPath, ["-e", head + program], { encoding: "utf8", env });
  expect(stderr).toBe("");
  return JSON.parse(stdout);
}

const visible = { GGML_VK_VISIBLE_DEVICES: "0" };
const inspect = "console.log(JSON.stringify(Object.fromEntries(load().map((p) => [p.name, p.found ?? p.problem]))))";

const missing = lavapipe === undefined ? "mesa-vulkan-drivers" : bins === null ? "llama.cpp's backend" : null;
const skipped = !process.env.CI && missing !== null;
const title = skipped ? `Vulkan: ${missing} is not installed, see scripts/install-test-tools.sh` : "Vulkan";
describe.skipIf(skipped)(title, () => {
  it("names its parts, and says that llama.cpp leaves out a driver for CPUs", () => {
    expect(run(inspect, visible)).toEqual({
      driver: expect.stringMatching(/^llvmpipe .*\(computes on the CPU\)$/),
      package: bins,
      backend: `${bins}/libggml-vulkan.so`,
      device: expect.stringContaining("llvmpipe"),
    });
    expect(run(inspect, {})).toMatchObject({
      device: expect.stringMatching(/^llama\.cpp takes no device of the driver: llvmpipe .*computes on the CPU/),
    });
    const none = run(inspect, { VK_ICD_FILENAMES: "/none.json" });
    expect(none).toMatchObject({ driver: expect.stringMatching(/^no driver starts/), backend: null });
  });

  it("has every operation that training needs, and refuses what trains on the CPU only", async () => {
    const files = await Promise.all(textArchitectures.map((architecture) => models.write({ architecture })));
    const quantized = await Promise.all([
      ...(["q8_0", "q4_1"] as const).map((type) => models.write({ type, embedding: 64, feedForward: 96 })),
      models.write({ type: "q4_K", embedding: 256, headSize: 64, feedForward: 256, layers: 1 }),
      models.write({ type: "f16" }),
    ]);
    const cases = [
      ...files.map((path) => ({ path, trainable: "full" })),
      ...[...files, ...quantized].map((path) => ({ path, trainable: "lora", lora: { rank: 4 } })),
    ].map((one) => ({ ...one, device: "vulkan", contextSize: 32, maxSequences: 1, threads: 1, kvType: "f32" }));
    const answers = run(
      `load();
      (async () => {
        const answers = [];
        for (const one of ${JSON.stringify(cases)}) {
          try {
            const model = await addon.loadModel(one);
            answers.push(model.info().device);
            await model.dispose();
          } catch (error) {
            answers.push(error.message);
          }
        }
        console.log(JSON.stringify(answers));
      })()`,
      visible,
    ) as string[];
    const onCpu = ["qwen35", "granitehybrid", "qwen3moe", "gpt-oss"];
    cases.forEach(({ path }, i) => {
      const architecture = textArchitectures[files.indexOf(path)] ?? "quantized";
      const expected = onCpu.includes(architecture) ? /train on the CPU only/ : /^vulkan$/;
      expect(answers[i], architecture).toMatch(expected);
    });
  });
});
