import { readdirSync, readFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { describe, expect, it } from "vitest";

// include/cria is the contract of native/; each part of native/src includes it and the parts below, and nothing reaches
// across.
const native = join(import.meta.dirname, "..", "native");

/**
 * Headers that a part may include besides its own and cria/. Files of src itself are "engine"; llama.cpp's headers come
 * last.
 */
const arrows: Record<string, readonly string[]> = {
  // A folder of src, with the ones below it.
  // The only part that knows which system it is compiled for.
  system: [],
  math: ["cpu"],
  cpu: ["math", "ggml"],
  engine: ["system", "cpu", "ggml", "llama"],
  threads: ["ggml", "llama"],
  grammar: ["llama"],
  infer: ["cpu", "math", "grammar", "ggml", "llama"],
  scheduler: ["engine", "infer", "threads", "grammar", "ggml", "llama"],
  vision: ["engine", "system", "cpu", "math", "ggml", "llama"],
  train: ["engine", "system", "threads", "cpu", "math", "kernels", "ggml", "llama"],
  // The binding includes only the contract.
  binding: ["napi"],
};

/** Headers of the contract: GGUF files are handed over in ggml's types. */
const contract: readonly string[] = ["ggml"];

function listSources(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.(cc|h)$/.test(name))
    .map((name) => join(folder, name));
}

function nameTarget(include: string): string {
  if (/^(ggml|gguf)[^/]*\.h$/.test(include)) return "ggml";
  if (/^llama[^/]*\.h$/.test(include)) return "llama";
  if (include === "napi.h") return "napi";
  // The library's own border.
  if (include === "../vision/cria_vision.h") return "vision";
  if (include.includes("kernels/")) return "kernels";
  return include.includes("/") ? include.split("/")[0]! : "engine";
}

function listIncludes(file: string): string[] {
  const lines = readFileSync(file, "utf8").matchAll(/^#include (?:"(.*)"|<(napi\.h)>)/gm);
  return [...lines].map(([, own, library]) => own ?? library!);
}

describe("native/ includes what its part may know", () => {
  for (const [part, allowed] of Object.entries(arrows)) {
    it(part, () => {
      const files = listSources(join(native, "src")).filter((file) => {
        const [first, ...rest] = relative(join(native, "src"), file).split(sep);
        return (rest.length > 0 ? first : "engine") === part;
      });
      expect(files.length).toBeGreaterThan(0);
      const wrong = files.flatMap((file) =>
        listIncludes(file)
          .filter((include) => ![part, "cria", ...allowed].includes(nameTarget(include)))
          .map((include) => `${relative(native, file)}: ${include}`),
      );
      expect(wrong).toEqual([]);
    });
  }

  it("include/cria: itself", () => {
    const files = listSources(join(native, "include", "cria"));
    expect(files.length).toBeGreaterThan(5);
    const wrong = files.flatMap((file) =>
      listIncludes(file)
        .filter((include) => !["cria", ...contract].includes(nameTarget(include)))
        .map((include) => `${relative(native, file)}: ${include}`),
    );
    expect(wrong).toEqual([]);
  });

  it("every folder of src is one of these", () => {
    const folders = readdirSync(join(native, "src"), { withFileTypes: true }).filter((entry) => entry.isDirectory());
    expect(folders.map(({ name }) => name).sort()).toEqual(
      Object.keys(arrows)
        .filter((part) => part !== "engine")
        .sort(),
    );
  });
});
