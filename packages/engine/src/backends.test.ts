import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EngineError } from "@cria/core";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { unpackLlamaSource } from "../../../native/scripts/llama-paths.mjs";
import { inspectBackend, loadModel } from "./index.js";
import { makeTinyModel } from "./testing/index.js";

const folder = mkdtempSync(join(tmpdir(), "cria-cuda-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
afterEach(() => vi.unstubAllEnvs());

interface Headers {
  include: string[];
  folders: string[];
}

/** A shared library with a few C functions, in a separate folder. */
function compile(place: string, file: string, source: string, headers: Headers = { include: [], folders: [] }): string {
  const path = join(folder, place, file);
  mkdirSync(join(folder, place), { recursive: true });
  const folders = headers.folders.map((name) => `-I${name}`);
  const flags = ["-std=c++17", "-shared", "-fPIC", ...folders, `-Wl,-soname,${file}`, "-x", "c++", "-", "-o", path];
  const includes = headers.include.map((name) => `#include "${name}"\n`).join("");
  execFileSync(process.env.CXX ?? "g++", flags, { input: `${includes}extern "C" {\n${source}\n}` });
  return join(folder, place);
}

const driver = (init: number, version: number) =>
  `int cuInit(unsigned) { return ${init}; } int cuDriverGetVersion(int * v) { *v = ${version}; return 0; }`;

/** A driver that starts, and gives `error` for the backend's module, or for its function. */
const loadingDriver = (error: number, of: "module" | "function") => `${driver(0, 13000)}
  int cuDeviceGet(int * device, int i) { *device = i; return 0; }
  int cuDevicePrimaryCtxRetain(void ** context, int) { *context = nullptr; return 0; }
  int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
  int cuCtxPushCurrent_v2(void *) { return 0; }
  int cuCtxPopCurrent_v2(void **) { return 0; }
  int cuModuleLoadData(void ** module, const char * image) {
    *module = (void *)image;
    return image[0] != 'k' ? 999 : ${of === "module" ? error : 0};
  }
  int cuModuleUnload(void *) { return 0; }
  int cuModuleEnumerateFunctions(void ** functions, unsigned, void * module) { *functions = module; return 0; }
  int cuFuncLoad(void *) { return ${of === "function" ? error : 0}; }
  int cuGetErrorName(int code, const char ** name) { *name = code == 222 ? "UNSUPPORTED_PTX" : "OTHER"; return 0; }`;

/** A backend of ggml with one device and, in its section of kernels, the letter 'k'. */
const registeringBackend = `
  const char * name(ggml_backend_reg_t) { return "CUDA"; }
  const char * device_name(ggml_backend_dev_t) { return "CUDA0"; }
  void memory(ggml_backend_dev_t, size_t * free, size_t * total) { *free = *total = size_t(1) << 30; }
  enum ggml_backend_dev_type type(ggml_backend_dev_t) { return GGML_BACKEND_DEVICE_TYPE_GPU; }
  ggml_backend_device device = { { device_name, device_name, memory, type }, nullptr, nullptr };
  size_t count(ggml_backend_reg_t) { return 1; }
  ggml_backend_dev_t get(ggml_backend_reg_t reg, size_t) { device.reg = reg; return &device; }
  ggml_backend_reg reg = { GGML_BACKEND_API_VERSION, { name, count, get }, nullptr };
  ggml_backend_reg_t ggml_backend_init() { return &reg; }
  __attribute__((section(".nv_fatbin"), used)) extern const char kernels[] = "kernels";`;

/** The addon's report, from a child process, because libraries stay loaded. */
function inspect(
  options: { folder?: string; search: string[] },
  name = "cuda",
  env: NodeJS.ProcessEnv = {},
): Record<string, string> {
  const native = createRequire(import.meta.url).resolve("@cria/native");
  const program = `const addon = require(${JSON.stringify(native)}).loadAddon();
    console.log(JSON.stringify(addon.loadBackend(${JSON.stringify({ ...options, name })})))`;
  const { stdout, stderr } = spawnSync(process.execPath, ["-e", program], {
    encoding: "utf8",
    env: { ...process.env, ...env },
  });
  expect(stderr).toBe("");
  const parts = JSON.parse(stdout) as { name: string; found: string | null; problem: string | null }[];
  return Object.fromEntries(parts.map(({ name, found, problem }) => [name, found ?? problem ?? "not reached"]));
}

/** Packages of backends are for one kind of machine. */
const remedyOf = (name: string) =>
  name.startsWith(`${process.platform}-${process.arch}-`)
    ? `npm install @node-llama-cpp/${name}@3.22.1`
    : "no package has it for this system";

const hasDriver = existsSync("/dev/nvidia0");
const title = hasDriver ? "what CUDA needs (skipped: this machine has a GPU)" : "what CUDA needs, on a machine without";

describe.skipIf(hasDriver)(title, () => {
  let runtime: string;
  beforeAll(() => {
    runtime = compile("runtime", "libcudart.so.13", "int cudaGetDeviceCount(int * n) { *n = 0; return 0; }");
    compile("runtime", "libcublas.so.13", "int cublasCreate_v2(void *) { return 0; }");
  });

  it("reports each missing part", () => {
    const found = inspect({ search: [] });
    expect(Object.keys(found)).toEqual([
      "driver",
      "cudart",
      "cublas",
      "package",
      "backend",
      "device",
      "code",
      "kernels",
    ]);
    expect(found.driver).toMatch(/libcuda\.so\.1: cannot open/);
    expect(found.cublas).toMatch(/libcublas\.so\.13: cannot open/);
    expect(found).toMatchObject({ package: "not installed", backend: "not reached", device: "not reached" });
  });

  it("reports a driver that does not start, and one that is too old", () => {
    const broken = compile("broken", "libcuda.so.1", driver(100, 13000));
    expect(inspect({ search: [broken] }).driver).toBe("the driver does not start: cuInit gives error 100");
    const old = compile("old", "libcuda.so.1", driver(0, 12080));
    expect(inspect({ search: [old] }).driver).toBe("the driver is for CUDA 12.8, CUDA 13.0 is needed");
  });

  it("finds libraries in named folders, and refuses a file that is not a backend", () => {
    const good = compile("good", "libcuda.so.1", driver(0, 13010));
    const backend = compile("backend", "libggml-cuda.so", "int nothing;");
    const found = inspect({ folder: backend, search: [good, runtime] });
    expect(found).toMatchObject({
      driver: `${join(good, "libcuda.so.1")}, CUDA 13.1`,
      // The system may have its own library.
      cudart: expect.stringMatching(/^\/.*libcudart\.so\.13/),
      cublas: join(runtime, "libcublas.so.13"),
      package: backend,
      device: "not reached",
    });
    expect(found.backend).toContain("libggml-cuda.so");
  });

  describe("the driver is asked whether it takes the backend's kernels", () => {
    // ggml would find out with its first kernel, and end the process.
    const inspectWith = (place: string, error: number, of: "module" | "function" = "module") => {
      const search = [compile(place, "libcuda.so.1", loadingDriver(error, of)), runtime];
      const headers = join(unpackLlamaSource("headers"), "ggml");
      const backend = compile(`${place}-backend`, "libggml-cuda.so", registeringBackend, {
        include: ["ggml-backend-impl.h"],
        folders: [join(headers, "include"), join(headers, "src")],
      });
      return inspect({ folder: backend, search });
    };

    it("a driver that takes them", () => {
      expect(inspectWith("taking", 0)).toMatchObject({
        device: "CUDA0, 1024 of 1024 MiB free",
        code: "the driver takes it",
      });
    });

    it("a driver that refuses the module, and one that loads it but not its function", () => {
      expect(inspectWith("refusing", 222).code).toBe("device 0 does not take it: UNSUPPORTED_PTX (222)");
      expect(inspectWith("lazy", 209, "function").code).toBe("device 0 does not take it: OTHER (209)");
    });
  });

  it("a package of another release is not loaded", () => {
    const bins = join(folder, "package", "bins", "linux-x64-cuda");
    mkdirSync(bins, { recursive: true });
    writeFileSync(join(folder, "package", "package.json"), '{"version":"3.0.0"}');
    vi.stubEnv("CRIA_CUDA_BACKEND", bins);
    const part = inspectBackend("cuda").find(({ name }) => name === "package")!;
    expect(part).toMatchObject({ found: null, problem: expect.stringMatching(/^version 3\.0\.0 in .*, 3\.22\.1 is/) });
    writeFileSync(join(folder, "package", "package.json"), '{"version":"3.22.1"}');
    writeFileSync(join(bins, "libggml-cuda.so"), "");
    writeFileSync(join(bins, "libggml-base.so"), "another build");
    const mismatch = inspectBackend("cuda").find(({ name }) => name === "package")!;
    expect(mismatch.problem).toMatch(/^libggml-base\.so in .* is not that in /);
  });

  it('"cuda" is refused with every missing part and its remedy; "auto" takes the CPU', async () => {
    const path = join(folder, "tiny.gguf");
    await makeTinyModel(path);
    vi.stubEnv("CRIA_CUDA_BACKEND", join(folder, "none"));
    const error = await loadModel({ path, device: "cuda" }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(EngineError);
    expect(error).toMatchObject({
      code: "engine/no-cuda",
      received: expect.stringMatching(/driver: libcuda\.so\.1.*cublas: libcublas.*package: no libggml-cuda\.so in/s),
      remedy: expect.stringMatching(/NVIDIA.*device "cpu"/s),
    });
    expect((error as EngineError).remedy).toContain(remedyOf("linux-x64-cuda"));
    const model = await loadModel({ path, threads: 1 });
    expect(model.info.device).toBe("cpu");
    await model.dispose();
  });

  it('"vulkan" is refused with its missing parts too', async () => {
    vi.stubEnv("CRIA_VULKAN_BACKEND", join(folder, "none"));
    await expect(loadModel({ path: "none.gguf", device: "vulkan" })).rejects.toMatchObject({
      code: "engine/no-vulkan",
      subject: 'device "vulkan"',
      received: expect.stringContaining("package: no libggml-vulkan.so in"),
      // The remedy also asks for a device if another test of this process has loaded the backend.
      remedy: expect.stringMatching(new RegExp(`${remedyOf("linux-x64-vulkan")}.*; .*or use device "cpu"$`)),
    });
  });

  it.skipIf(process.platform === "darwin")('"metal" is refused where there is none', async () => {
    await expect(loadModel({ path: "none.gguf", device: "metal" })).rejects.toMatchObject({
      code: "engine/no-metal",
      subject: 'device "metal"',
      received: expect.stringMatching(/driver: .*Metal.*package: not installed/),
      remedy: expect.stringMatching(/^only macOS has Metal; .*or use device "cpu"$/),
    });
  });

  it("refuses an unknown device", async () => {
    await expect(loadModel({ path: "none", device: "npu" as "cpu" })).rejects.toThrow();
  });
});
