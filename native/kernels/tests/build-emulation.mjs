// Compiles the kernels for the CPU (cuda_emulation.h) with the machine's C++ compiler, once for each state of their sources:
// the check program, and a library that stands in for libcria-cuda.so. Prints nothing; needs an unpacked llama.cpp.
//   buildEmulation() -> { check, library, rounding }
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { findBins } from "../../scripts/build-llama.mjs";
import { nativeRoot, unpackLlamaSource } from "../../scripts/llama-paths.mjs";

const run = promisify(execFile);
const kernels = join(nativeRoot, "kernels");

const kernelSources = readdirSync(kernels)
  .filter((name) => name.endsWith(".cu"))
  .map((name) => join(kernels, name));

function hashSources() {
  const hash = createHash("sha256");
  for (const folder of [kernels, join(kernels, "tests")])
    for (const name of readdirSync(folder).sort())
      if (/\.(cu|cuh|h|cc)$/.test(name)) hash.update(name).update(readFileSync(join(folder, name)));
  return hash.digest("hex").slice(0, 16);
}

/**
 * Products of `library` keep full F32 operands, so that finite differences can check code that uses it; `rounding`
 * rounds as a GPU does.
 */
export async function buildEmulation() {
  const folder = join(nativeRoot, ".cache", "emulation", hashSources());
  mkdirSync(folder, { recursive: true });
  const check = join(folder, "check_kernels");
  const library = join(folder, "libcria-emulated.so");
  const rounding = join(folder, "libcria-rounding.so");
  const bins = findBins();
  const common = ["-std=c++17", "-O1", `-I${kernels}`, `-I${join(kernels, "tests")}`];
  const compile = async (output, args) => {
    if (existsSync(output)) return;
    const temporary = `${output}.${process.pid}.tmp`;
    await run(process.env.CXX ?? "g++", [...common, ...args, "-o", temporary]);
    renameSync(temporary, output);
  };
  await Promise.all([
    compile(check, [
      `-I${join(unpackLlamaSource("headers"), "ggml", "include")}`,
      ...["-x", "c++", ...kernelSources, join(kernels, "tests", "check_kernels.cu"), join(kernels, "reference.cc")],
      ...["-x", "none", `-L${bins}`, "-lggml-base", `-Wl,-rpath,${bins}`, "-Wl,--allow-shlib-undefined"],
    ]),
    compile(library, ["-shared", "-fPIC", "-DCRIA_EMULATION_EXACT", "-x", "c++", ...kernelSources]),
    compile(rounding, ["-shared", "-fPIC", "-x", "c++", ...kernelSources]),
  ]);
  return { check, library, rounding };
}
