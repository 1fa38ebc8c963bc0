// The operations that llama.cpp's Metal backend has, by the answers of its own function (ggml_metal_device_supports_op in the
// pinned release's sources), compiled as C: a library whose cria_device_supports(node) an emulated device asks
// (loadEmulated). Needs node-llama-cpp's sources, git and a C compiler, and no Mac.
//   buildMetalOperations() -> path of the library
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { findBins } from "../scripts/build-llama.mjs";
import { nativeRoot, unpackLlamaSource } from "../scripts/llama-paths.mjs";

const NAME = "ggml_metal_device_supports_op";

/**
 * A function's text, from its first line to the brace that closes it, behind those of the backend's that it calls.
 * @throws Error when it has moved.
 */
export function cutFunction(source, name = NAME) {
  const begin = source.search(new RegExp(`^(static )?(inline )?bool ${name}\\([^;{]*\\{`, "m"));
  const end = source.indexOf("\n}\n", begin);
  if (begin < 0 || end < 0) throw new Error(`${name} is not where it was in the sources of llama.cpp`);
  const text = source.slice(begin, end + 3);
  const called = [...text.matchAll(/\b(ggml_metal_\w+)\(/g)]
    .map(([, other]) => other)
    .filter((other) => other !== name);
  return [...new Set(called)].map((other) => cutFunction(source, other)).join("") + text;
}

/** The text of a C file. Every property of a device that the function reads is true, as on Apple's processors. */
export function writeProgram(supports) {
  const properties = [...new Set([...supports.matchAll(/\bprops(?:\.|->)(\w+)/g)].map(([, name]) => name))];
  if (properties.length === 0) throw new Error(`${NAME} asks for no property of the device`);
  return `#include <stdbool.h>
#include "ggml-impl.h"
#include "ggml-metal-impl.h"
struct properties { bool ${properties.join(", ")}; };
struct device { struct properties props; };
typedef struct device * ggml_metal_device_t;
${supports}
__attribute__((visibility("default"))) bool cria_device_supports(const struct ggml_tensor * node) {
  static struct device device = { { ${properties.map(() => "true").join(", ")} } };
  return ${NAME}(&device, node);
}
`;
}

/** The text of all files of the backend but its kernels. */
export function readMetalSource() {
  const folder = join(unpackLlamaSource("metal"), "ggml", "src", "ggml-metal");
  return readdirSync(folder)
    .filter((file) => /\.(m|cpp)$/.test(file))
    .map((file) => readFileSync(join(folder, file), "utf8"))
    .join("\n");
}

/** @param supports the function's text: Metal's own, or another with the same name. */
export function buildMetalOperations(supports = cutFunction(readMetalSource())) {
  const program = writeProgram(supports);
  const folder = join(nativeRoot, ".cache", "metal", createHash("sha256").update(program).digest("hex").slice(0, 16));
  const library = join(folder, "libmetal-operations.so");
  if (existsSync(library)) return library;
  mkdirSync(folder, { recursive: true });
  const temporary = `${library}.${process.pid}.tmp`;
  const bins = findBins();
  const headers = ["include", "src", "src/ggml-metal"].map(
    (part) => `-I${join(unpackLlamaSource("metal"), "ggml", part)}`,
  );
  const link = [`-L${bins}`, "-lggml-base", `-Wl,-rpath,${bins}`];
  const strict = ["-w", "-Werror=implicit-function-declaration"];
  const args = ["-std=gnu11", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", ...strict, ...headers];
  execFileSync(process.env.CC ?? "cc", [...args, "-x", "c", "-", "-o", temporary, ...link], { input: program });
  renameSync(temporary, library);
  return library;
}
