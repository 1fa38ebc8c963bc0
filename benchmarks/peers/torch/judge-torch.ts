import { formatNumber } from "../../report.js";

/** Facts about the products of PyTorch's process. */
export interface TorchProducts {
  /** Files of linear algebra that it has loaded; empty where the system does not tell. */
  libraries: string[];
  /** MKL, as PyTorch's own packages have it built in. */
  hasMkl: boolean;
  gflops: number;
  peakGflops: number;
}

/**
 * Least share of the machine's multiply-adds. OpenBLAS and MKL reach 0.6 to 0.9; reference BLAS 0.01; kernels for a
 * much older CPU 0.1 to 0.3.
 */
export const LEAST_SHARE = 0.4;

const ADVICE = "install OpenBLAS (Debian: libopenblas0-pthread)";

/**
 * Names the library that multiplies. Debian's PyTorch calls libblas.so.3, which is one of several libraries of that
 * name.
 */
export function nameBlas({ libraries, hasMkl }: Pick<TorchProducts, "libraries" | "hasMkl">): string {
  if (hasMkl) return "MKL";
  const called = libraries.find((path) => /\/lib(c?blas)\.so/.test(path));
  const version = libraries.map((path) => /libopenblas\w*-r([\d.]+)\.so/.exec(path)?.[1]).find(Boolean);
  const openblas = version ? `OpenBLAS ${version}` : "OpenBLAS";
  // OpenBLAS may only be there for LAPACK, in addition to another libblas.so.3.
  if (called) return called.includes("openblas") ? openblas : called;
  if (libraries.some((path) => path.includes("openblas"))) return openblas;
  return libraries[0] ?? "an unknown library";
}

/** Why no ratio is made with this PyTorch; null when nothing holds it back. */
export function findFault(products: TorchProducts): string | null {
  const blas = nameBlas(products);
  const { libraries, gflops, peakGflops } = products;
  if (libraries.length > 0 && !/^(OpenBLAS|MKL)/.test(blas))
    return `OpenBLAS is not what it loaded (${blas}, ${formatNumber(gflops)} GFLOP/s): ${ADVICE}`;
  const share = gflops / peakGflops;
  if (!(share >= LEAST_SHARE))
    return `its sgemm (${blas}) does ${formatNumber(gflops)} GFLOP/s, ${formatNumber(share)} of the machine's ${formatNumber(peakGflops)}, at least ${LEAST_SHARE} is expected: measure on an idle machine, or ${ADVICE}`;
  return null;
}
