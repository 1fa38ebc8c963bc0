import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { findRoundedProducts } from "./fused-code.js";

// Code that this CPU cannot run can still be read.
const nativeRoot = join(import.meta.dirname, "..");
const objects = join(nativeRoot, "build", "CMakeFiles", "cria_cpu.dir", "src");
const isX86 = process.arch === "x64";

function runTool(tool: string, args: string[]): string {
  const { error, status, stdout, stderr } = spawnSync(tool, args, { encoding: "utf8", maxBuffer: 1 << 28 });
  if (error) throw new Error(`${tool} cannot be run (${error.message}): scripts/install-test-tools.sh installs it`);
  if (status !== 0) throw new Error(`${tool} ${args.join(" ")}: ${stderr}`);
  return stdout;
}

/** Objects of the units with instructions that some CPUs lack. */
function listKernelObjects(): string[] {
  if (!existsSync(objects)) throw new Error(`${objects} is not there: npm run bootstrap builds it`);
  return (readdirSync(objects, { recursive: true }) as string[])
    .filter((file) => /_(avx\d+|vnni)\.cc\.o$/.test(file))
    .sort();
}

describe.skipIf(!isX86)(`kernels for AVX2 and AVX-512${isX86 ? "" : " (skipped: only x86-64 builds them)"}`, () => {
  it("are all built", () => {
    expect(listKernelObjects()).toEqual([
      "cpu/gemm_avx2.cc.o",
      "cpu/gemm_avx512.cc.o",
      "cpu/integer_gemm_avx2.cc.o",
      "cpu/integer_gemm_vnni.cc.o",
      "math/row_avx2.cc.o",
      "math/row_avx512.cc.o",
    ]);
  });

  for (const file of isX86 ? listKernelObjects() : []) {
    it(`${file} rounds no product before it is added`, () => {
      const code = runTool("objdump", ["-d", "-C", "--no-show-raw-insn", join(objects, file)]);
      const { fused, additions } = findRoundedProducts(code);
      expect(additions).toEqual([]);
      expect(fused).toBeGreaterThan(15);
    });

    it(`${file} brings no function that other units may get from the linker`, () => {
      const symbols = runTool("nm", ["-C", "--defined-only", join(objects, file)]).split("\n");
      const shared = symbols.filter((line) => / [WVu] /.test(line) && !/cria::(avx2|vnni)::/.test(line));
      expect(shared).toEqual([]);
    });
  }
});

describe("findRoundedProducts", () => {
  const compile = (body: string, ...options: string[]) => {
    const source = `typedef float V __attribute__((vector_size(32)));\n${body}`;
    const file = join(tmpdir(), `cria-fused-${process.pid}-${Math.random()}.o`);
    execFileSync(process.env.CXX ?? "c++", ["-x", "c++", "-O3", "-mavx2", "-mfma", ...options, "-c", "-", "-o", file], {
      input: source,
    });
    try {
      return findRoundedProducts(runTool("objdump", ["-d", "-C", "--no-show-raw-insn", file]));
    } finally {
      rmSync(file, { force: true });
    }
  };
  const sum = "V f(V a, V b, V c) { return a * b + c; }";

  it.skipIf(!isX86)("tells fused products from others", () => {
    expect(compile(sum, "-ffp-contract=fast")).toEqual({ fused: 1, additions: [] });
    expect(compile(sum, "-ffp-contract=off").additions).toHaveLength(1);
    const loop =
      "void f(float * a, const V * b, V * c, int n) { V s{}; for (int i = 0; i < n; i++) s += a[i] * b[i]; *c = s; }";
    expect(compile(loop, "-ffp-contract=off").additions.length).toBeGreaterThan(0);
    expect(compile(loop, "-ffp-contract=fast").additions).toEqual([]);
  });

  it("follows products through copies and the stack, and forgets overwritten ones", () => {
    const read = (...lines: string[]) =>
      findRoundedProducts(["0000 <f>:", ...lines.map((l, i) => `   ${i}:\t${l}`)].join("\n")).additions.length;
    expect(read("vmulps %ymm0,%ymm1,%ymm2", "vaddps %ymm2,%ymm3,%ymm4")).toBe(1);
    expect(read("vmulps %zmm0,%zmm1,%zmm2", "vmovaps %zmm2,0x40(%rsp)", "vaddps 0x40(%rsp),%zmm3,%zmm4")).toBe(1);
    expect(read("vmulss %xmm0,%xmm1,%xmm2", "vmovaps %xmm2,%xmm5", "vsubss %xmm5,%xmm3,%xmm4")).toBe(1);
    expect(read("vmulps %ymm0,%ymm1,%ymm2", "vfmadd213ps %ymm2,%ymm3,%ymm4")).toBe(1);
    expect(read("vmulps %ymm0,%ymm1,%ymm2", "vfmadd231ps %ymm2,%ymm3,%ymm4")).toBe(0);
    expect(read("vmulps %ymm0,%ymm1,%ymm2", "vmaxps %ymm2,%ymm3,%ymm2", "vaddps %ymm2,%ymm3,%ymm4")).toBe(0);
  });
});
