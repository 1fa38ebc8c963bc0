import { execFileSync, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TinyModels } from "./testing/index.js";

/**
 * Allocations of one size fail while a file exists, so that the failing allocation is known. The size is that of a row
 * of logits, which the scheduler's thread copies when a prompt ends.
 */
const VOCABULARY = 12_352;
const FAILING_MALLOC = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>
void * malloc(size_t size) {
    static void * (*real)(size_t);
    if (!real) real = dlsym(RTLD_NEXT, "malloc");
    const char * armed = size == ${VOCABULARY * 4} ? getenv("CRIA_FAIL_MALLOC") : NULL;
    return armed && access(armed, F_OK) == 0 ? NULL : real(size);
}`;

const engine = new URL("../dist/index.js", import.meta.url).href;
const models = new TinyModels();
const library = join(models.folder, "failing-malloc.so");
beforeAll(() => {
  const source = join(models.folder, "failing-malloc.c");
  writeFileSync(source, FAILING_MALLOC);
  execFileSync("cc", ["-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"]);
});
afterAll(() => models.cleanUp());

describe.skipIf(process.platform !== "linux")("the scheduler's thread runs out of memory", () => {
  it("the requests in flight fail with the reason; the model goes on as if it had been asked for the first time", async () => {
    const path = await models.write({ vocabulary: VOCABULARY });
    const armed = join(models.folder, "armed");
    const program = `
      import { rmSync, writeFileSync } from "node:fs";
      import { loadModel } from ${JSON.stringify(engine)};
      const model = await loadModel({ path: ${JSON.stringify(path)}, contextSize: 64, maxSequences: 2, threads: 1 });
      const ask = () => model.createSequence().generate([1, 2, 3], { maxTokens: 8, seed: 5, stopTokens: [] });
      const first = [...(await ask()).tokenIds];
      await model.flushCache();
      writeFileSync(${JSON.stringify(armed)}, "");
      const failed = await Promise.allSettled([ask(), ask(), ask(), ask()]);
      rmSync(${JSON.stringify(armed)});
      const again = [...(await ask()).tokenIds];
      const describe = ({ reason }) => reason ? { code: reason.code, received: reason.received } : "generated";
      console.log(JSON.stringify({ first, again, failed: failed.map(describe) }));`;
    const child = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
      encoding: "utf8",
      timeout: 240_000,
      env: { ...process.env, LD_PRELOAD: library, CRIA_FAIL_MALLOC: armed },
    });
    expect(child.stderr).toBe("");
    expect(child.signal).toBeNull();
    const { first, again, failed } = JSON.parse(child.stdout);
    for (const error of failed)
      expect(error).toEqual({ code: "engine/engine-failed", received: expect.stringContaining("bad_alloc") });
    expect(again).toEqual(first);
  });
});
