import { EngineError } from "@cria/core";
import { afterAll, describe, expect, it } from "vitest";
import { getRuntimeInfo, loadModel } from "./index.js";
import { TinyModels } from "./testing/index.js";

// A process chooses only once: first the choices that must fail, then one that lasts.
const models = new TinyModels();
const { CRIA_CPU_KERNEL: given } = process.env;
afterAll(async () => {
  await models.cleanUp();
  if (given === undefined) delete process.env.CRIA_CPU_KERNEL;
  else process.env.CRIA_CPU_KERNEL = given;
});

function catchError(call: () => unknown): EngineError {
  try {
    call();
  } catch (error) {
    return error as EngineError;
  }
  throw new Error("nothing was thrown");
}

describe("CRIA_CPU_KERNEL", () => {
  it("refuses an unknown name, and lists the known ones", async () => {
    process.env.CRIA_CPU_KERNEL = "sse9";
    const error = catchError(getRuntimeInfo);
    expect(error).toBeInstanceOf(EngineError);
    const bad = { code: "engine/bad-cpu-kernel", subject: "CRIA_CPU_KERNEL" };
    expect(error).toMatchObject({ ...bad, expected: expect.stringContaining("portable"), received: '"sse9"' });
    await expect(loadModel({ path: "none.gguf" })).rejects.toMatchObject(bad);
  });

  it("refuses a kernel that this CPU lacks, by its name; takes another one, with its build of ggml", async () => {
    const usable = (() => {
      process.env.CRIA_CPU_KERNEL = "none";
      return ["avx512", "avx2", "portable"].filter((name) => catchError(getRuntimeInfo).expected?.includes(name));
    })();
    expect(usable).toContain("portable");
    for (const name of ["avx512", "avx2"].filter((kernel) => !usable.includes(kernel))) {
      process.env.CRIA_CPU_KERNEL = name;
      expect(catchError(getRuntimeInfo)).toMatchObject({ code: "engine/bad-cpu-kernel", received: `"${name}"` });
    }
    process.env.CRIA_CPU_KERNEL = "portable";
    const info = getRuntimeInfo();
    expect(info.usableCpuKernels).toEqual(usable);
    const model = await models.load();
    const expected = { cpuKernel: "portable", ...(process.arch === "x64" ? { ggmlBuild: "x64" } : {}) };
    expect(info).toMatchObject(expected);
    expect(model.info).toMatchObject(expected);
    // The choice is made once.
    process.env.CRIA_CPU_KERNEL = usable[0];
    expect(getRuntimeInfo()).toMatchObject(expected);
  });
});
