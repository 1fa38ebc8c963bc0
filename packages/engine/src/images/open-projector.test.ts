import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type EngineError, encodePng, type ModelInfo } from "@cria/core";
import { nameVisionPackage } from "@cria/native";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { writeGguf } from "../gguf-files/write-gguf.js";
import { loadNative } from "../load-native.js";
import { callNative } from "../native.js";
import type { GgufFile, NativeModel } from "../native-types.js";
import { getRuntimeInfo } from "../runtime-info.js";
import { describeTinyProjector, TinyModels, type TinyProjectorOptions } from "../testing/index.js";
import { type OpenedProjector, type OpenProjectorOptions, openProjector } from "./open-projector.js";
import { inspectVision } from "./vision-library.js";

const models = new TinyModels();
const opened: OpenedProjector[] = [];
let model: NativeModel;
let info: ModelInfo;
beforeAll(async () => {
  model = await loadNative({ path: await models.write(), contextSize: 32, maxSequences: 1, threads: 1 });
  info = model.info();
});
let cache = 0;
beforeEach(() => {
  vi.stubEnv("XDG_CACHE_HOME", join(models.folder, `cache-${cache++}`));
});
afterEach(() => vi.unstubAllEnvs());
afterAll(async () => {
  await Promise.all(opened.map(({ native }) => native.dispose()));
  await model.dispose();
  await models.cleanUp();
});

/** Release number of the loaded llama.cpp, without a suffix. */
const llamaRelease = () => /^[\d.]+\d/.exec(getRuntimeInfo().llamaVersion)![0];

/** The interface version in the library's header. */
const visionInterface = Number(
  /CRIA_VISION_ABI (\d+)/.exec(
    readFileSync(new URL("../../../../native/vision/cria_vision.h", import.meta.url), "utf8"),
  )![1],
);

let written = 0;
async function write(options: TinyProjectorOptions = {}, change: (file: GgufFile) => void = () => {}): Promise<string> {
  const file = describeTinyProjector(options);
  change(file);
  const path = join(models.folder, `mmproj-${written++}.gguf`);
  await writeGguf(path, file);
  return path;
}

async function open(path: string, options: Partial<OpenProjectorOptions> = {}): Promise<OpenedProjector> {
  const projector = await openProjector(model, info, { path, ...options });
  opened.push(projector);
  return projector;
}

const refuse = (path: string, options?: Partial<OpenProjectorOptions>): Promise<EngineError> =>
  open(path, options).then(
    () => expect.fail("opened"),
    (error) => error,
  );

const makePng = (width: number, height: number, seed: number) =>
  encodePng({
    width,
    height,
    rgb: Uint8Array.from({ length: width * height * 3 }, (_, i) => Math.imul(i + seed * 977, 2654435761) >>> 17),
  });

const encode = async ({ native }: OpenedProjector, file: Uint8Array) =>
  (await callNative(() => native.encode(file, 2 ** 20, 1))).vectors;

describe("a projector", () => {
  it("describes itself, and the places of images in a prompt", async () => {
    const path = await write();
    const projector = await open(path);
    expect(projector.info).toEqual({ path, type: "mlp", hash: expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect(projector.native.info()).toEqual({ type: "mlp", vectorSize: 32 });
    for (const [width, height] of [
      [32, 32],
      [1, 1],
      [640, 480],
      [46_000, 46_000],
    ] as const)
      expect(projector.native.layout(width, height)).toEqual([{ vectors: 16, columns: 0, rows: 0 }]);
    for (const [width, height] of [
      [0, 1],
      [46_001, 1],
      [Number.NaN, 1],
    ] as const)
      await expect(callNative(() => projector.native.layout(width, height))).rejects.toMatchObject({
        code: "engine/bad-image",
        expected: "sides of 1 to 46000 pixels",
      });
  });

  it("computes the formula of its family", async () => {
    // A tower with one layer has none: llama.cpp leaves the last layer out.
    const file = describeTinyProjector({ layers: 1 });
    const projector = await open(await write({ layers: 1 }));
    const rgb = Uint8Array.from({ length: 32 * 32 * 3 }, (_, i) => Math.imul(i, 2654435761) >>> 19);
    const vectors = await encode(projector, await encodePng({ width: 32, height: 32, rgb }));
    const expected = computeMlp(file, rgb);
    const differences = Array.from(vectors, (value, i) => Math.abs(value - expected[i]!));
    expect(vectors.length).toBe(16 * 32);
    expect(Math.hypot(...expected) / Math.sqrt(expected.length)).toBeGreaterThan(0.3);
    // ggml looks GELU up in a table of 16-bit floats.
    expect(Math.max(...differences)).toBeLessThan(5e-3);
  });

  it("gives the same bits with any number of threads, and after any other image", async () => {
    const path = await write();
    const [first, second] = [await makePng(40, 30, 1), await makePng(300, 20, 2)];
    const alone = await encode(await open(path, { threads: 1 }), first);
    for (const threads of [1, 2, 3]) {
      const projector = await open(path, { threads });
      const [other, again] = await Promise.all([encode(projector, second), encode(projector, first)]);
      expect(other).not.toEqual(alone);
      expect(again).toEqual(alone);
    }
  });

  it("encodes one image after the other while it answers questions of layout; dispose drops waiting ones", async () => {
    const { native } = await openProjector(model, info, { path: await write() });
    const file = await makePng(500, 500, 3);
    const all = Promise.allSettled(Array.from({ length: 20 }, () => native.encode(file, 2 ** 20, 1)));
    expect(native.layout(500, 500)).toHaveLength(1);
    await native.dispose();
    const ends = (await all).map(({ status }) => status);
    expect(ends).toContain("rejected");
    expect(ends.lastIndexOf("fulfilled")).toBeLessThan(ends.indexOf("rejected"));
    await expect(callNative(() => native.layout(1, 1))).rejects.toMatchObject({ code: "engine/disposed" });
    await expect(native.encode(file, 2 ** 20, 1)).rejects.toMatchObject({
      code: "aborted",
      subject: "projector",
    });
    await native.dispose();
  });
});

/**
 * LLaVA's projector over one layer's input, in doubles: patches, positions, two linear layers with GELU between them.
 */
function computeMlp({ tensors }: GgufFile, rgb: Uint8Array): number[] {
  const read = (name: string) => tensors.find((tensor) => tensor.name === name)!.data;
  const [side, patch, size] = [32, 8, 32];
  const linear = (name: string, inputs: number[]) =>
    Array.from(read(`${name}.bias`), (bias, row) => {
      const weight = read(`${name}.weight`);
      return inputs.reduce((sum, value, i) => sum + value * weight[row * inputs.length + i]!, bias);
    });
  const gelu = (x: number) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
  const [kernel, bias, positions] = ["v.patch_embd.weight", "v.patch_embd.bias", "v.position_embd.weight"].map(read);
  const patches = side / patch;
  return Array.from({ length: patches ** 2 }, (_, p) => {
    const hidden = Array.from({ length: size }, (_, out) => {
      let sum = bias![out]! + positions![p * size + out]!;
      for (let c = 0; c < 3; c++)
        for (let y = 0; y < patch; y++)
          for (let x = 0; x < patch; x++) {
            const [row, column] = [Math.floor(p / patches) * patch + y, (p % patches) * patch + x];
            const pixel = (rgb[(row * side + column) * 3 + c]! / 255 - 0.5) / 0.5;
            sum += pixel * kernel![((out * 3 + c) * patch + y) * patch + x]!;
          }
      return sum;
    });
    return linear("mm.2", linear("mm.0", hidden).map(gelu));
  }).flat();
}

describe.concurrent("a projector that cannot be used is refused, with the reason", () => {
  const set = (key: string, value: number | boolean | string) => (file: GgufFile) => {
    const type = { number: "uint32", boolean: "bool", string: "string" }[typeof value as "number"] as "uint32";
    file.metadata[key] = { type, value: value as number };
  };
  const type = (name: string) => `type "${name}"`;
  /** Two by two patches become one, and the image's tokens see each other. */
  const becomeGemma = (file: GgufFile) => {
    set("clip.projector_type", "gemma3")(file);
    set("clip.vision.projector.scale_factor", 2)(file);
    const add = (name: string, shape: number[]) =>
      file.tensors.push({ name, type: "f32", shape, data: new Float32Array(shape.reduce((a, b) => a * b)).fill(0.1) });
    add("v.post_ln.weight", [32]);
    add("v.post_ln.bias", [32]);
    add("mm.soft_emb_norm.weight", [32]);
    add("mm.input_projection.weight", [32, 32]);
  };
  const cases: [string, (file: GgufFile) => void, object][] = [
    [
      "for sound alone",
      (file) => {
        set("clip.has_vision_encoder", false)(file);
        set("clip.has_audio_encoder", true)(file);
      },
      { received: expect.stringContaining("clip.has_audio_encoder") },
    ],
    ["no projector", set("clip.has_vision_encoder", false), { received: 'a GGUF of architecture "clip"' }],
    [
      "attention that is not causal",
      becomeGemma,
      { expected: expect.stringContaining("causal"), received: type("gemma3") },
    ],
    [
      "positions of several dimensions for a plain model",
      set("clip.projector_type", "qwen2.5vl_merger"),
      { expected: expect.stringContaining("positions"), received: type("qwen2.5vl_merger") },
    ],
    [
      "a family that llama.cpp does not know",
      set("clip.projector_type", "new"),
      { received: expect.stringContaining("unknown projector type: new") },
    ],
    [
      "a side of 0 pixels",
      set("clip.vision.patch_size", 0),
      { expected: "clip.vision.patch_size from 1 to 1024", received: "0" },
    ],
    [
      "a side that is no number",
      set("clip.vision.image_size", "32"),
      { expected: "clip.vision.image_size from 1 to 6144", received: "none of type uint32" },
    ],
    [
      "patches larger than the image",
      set("clip.vision.patch_size", 64),
      { expected: expect.stringMatching(/^(at most \d+ )?vectors of an image/) },
    ],
  ];
  for (const [name, change, fields] of cases) {
    it(name, async () => {
      const path = await write({}, change);
      expect(await refuse(path)).toMatchObject({ code: "engine/bad-projector", subject: path, ...fields });
    });
  }

  it("vectors of another size than the model's", async () => {
    expect(await refuse(await write({ projection: 64 }))).toMatchObject({
      code: "engine/bad-projector",
      received: expect.stringMatching(/n_embd = 32.*n_embd = 64/s),
      remedy: expect.stringContaining("mmproj"),
    });
  });

  it("a file that is not there", async () => {
    expect(await refuse(join(models.folder, "none.gguf"))).toMatchObject({ code: "engine/file-not-found" });
  });

  // Each of these once triggered an assertion of ggml, which ends the process.
  const damage: [string, (file: GgufFile) => void][] = [
    ["a position table of other length", shrink("v.position_embd.weight", [32, 9])],
    ["a layer of other inputs", shrink("mm.0.weight", [16, 32])],
    ["a bias of other length", shrink("mm.2.bias", [31])],
    ["a patch of two colours", shrink("v.patch_embd.weight", [8, 8, 2, 32])],
  ];
  for (const [name, change] of damage) {
    it(name, async () => {
      const path = await write({}, change);
      const error = await refuse(path);
      expect(error).toMatchObject({ code: "engine/bad-projector", subject: path });
      expect(error.received).toMatch(/GGML_ASSERT/);
    });
  }

  it("weights that are not numbers", async () => {
    const path = await write({}, ({ tensors }) =>
      tensors.find(({ name }) => name === "mm.2.weight")!.data.fill(Number.NaN),
    );
    expect(await refuse(path)).toMatchObject({
      code: "engine/bad-projector",
      subject: path,
      received: expect.stringContaining("NaN or infinity"),
    });
  });
});

function shrink(name: string, shape: number[]) {
  return ({ tensors }: GgufFile) => {
    const tensor = tensors.find((other) => other.name === name)!;
    tensor.shape = shape;
    tensor.data = tensor.data.slice(
      0,
      shape.reduce((product, n) => product * n, 1),
    );
  };
}

describe("the check of a file", () => {
  it("is made once: files that passed are remembered, others are not", async () => {
    const path = await write();
    // No child process is that fast.
    const hurried = { timeLimit: 1 };
    expect(await refuse(path, hurried)).toMatchObject({
      code: "engine/bad-projector",
      subject: path,
      received: "no end within 0.001 s",
    });
    await open(path);
    await open(path, hurried);
    const [file] = readdirSync(join(process.env.XDG_CACHE_HOME!, "cria", "projectors"));
    expect(readFileSync(join(process.env.XDG_CACHE_HOME!, "cria", "projectors", file!), "utf8")).toMatch(/"projector"/);
    // Another file, and another token limit.
    await refuse(await write({ seed: 2 }), hurried);
    await refuse(path, { ...hurried, maxTokens: 100 });
  });

  it("goes on without a cache that can be written", async () => {
    vi.stubEnv("XDG_CACHE_HOME", await write());
    await open(await write());
  });

  /** A library whose projectors run the given C code; only a child process loads it. */
  function compileLibrary(name: string, body: string): string {
    const folder = join(models.folder, name);
    mkdirSync(folder);
    const path = join(folder, "libcria-vision.so");
    const source = `#include <signal.h>
      #include <stdio.h>
      #include <unistd.h>
      extern "C" {
      int cria_vision_abi(void) { return ${visionInterface}; }
      const char * cria_vision_release(void) { return "${llamaRelease()}"; }
      void cria_vision_start(void *) {}
      void * cria_vision_open(void *) { ${body} return 0; }
      void cria_vision_close(void *) {} void cria_vision_describe() {} void cria_vision_layout() {}
      void cria_vision_encode() {} void cria_picture_size() {} void cria_picture_decode() {} }`;
    execFileSync(process.env.CXX ?? "c++", ["-shared", "-fPIC", "-w", "-x", "c++", "-", "-o", path], { input: source });
    return path;
  }

  it("reports a file that ends the child, or never ends", async () => {
    const path = await write();
    vi.stubEnv("CRIA_VISION", compileLibrary("ends", 'fprintf(stderr, "so it ends"); raise(SIGKILL);'));
    const ended = await refuse(path);
    expect(ended).toMatchObject({ code: "engine/bad-projector", subject: path, received: "SIGKILL: so it ends" });
    vi.stubEnv("CRIA_VISION", compileLibrary("hangs", "for (;;) sleep(1);"));
    expect(await refuse(path, { timeLimit: 600 })).toMatchObject({ received: "no end within 0.6 s" });
  });
});

describe("libcria-vision.so", () => {
  it("that is missing: names the package to install", async () => {
    // Simulates that neither a build nor the package exists.
    vi.resetModules();
    vi.doMock("@cria/native", async (original) => ({ ...(await original<object>()), findVisionLibrary: () => null }));
    const fresh = await import("./open-projector.js");
    const error = await fresh.openProjector(model, info, { path: "mmproj.gguf" }).catch((error: unknown) => error);
    vi.doUnmock("@cria/native");
    expect(error).toMatchObject({
      code: "engine/vision-missing",
      remedy: expect.stringContaining(`npm install ${nameVisionPackage()}`),
    });
  });

  it("of another release, or broken: why it does not load", () => {
    expect(inspectVision()).toMatchObject({ problem: null, release: llamaRelease() });
    const compile = (name: string, release: string) => {
      const path = join(models.folder, name);
      const source = `int cria_vision_abi(void) { return 7; } const char * cria_vision_release(void) { return "${release}"; }`;
      execFileSync("cc", ["-shared", "-fPIC", "-x", "c", "-", "-o", path], { input: source });
      return path;
    };
    vi.stubEnv("CRIA_VISION", compile("old.so", "0.4.0"));
    expect(inspectVision().problem).toMatch(
      new RegExp(`another release.*interface ${visionInterface}, llama\\.cpp .*interface 7, llama\\.cpp 0\\.4\\.0`),
    );
    vi.stubEnv("CRIA_VISION", join(models.folder, "none.so"));
    expect(inspectVision()).toMatchObject({
      release: null,
      problem: expect.stringMatching(/none\.so cannot be loaded/),
    });
  });
});
