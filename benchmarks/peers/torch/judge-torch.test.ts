import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { findFault, nameBlas } from "./judge-torch.js";
import { findOpenBlas, TorchPeer } from "./torch-peer.js";

const folder = "/usr/lib/x86_64-linux-gnu";
const openblas = [`${folder}/openblas-pthread/libblas.so.3`, `${folder}/openblas-pthread/libopenblasp-r0.3.21.so`];
/** OpenBLAS came with LAPACK; products are reference BLAS'. */
const reference = [`${folder}/blas/libblas.so.3.11.0`, `${folder}/openblas-pthread/libopenblasp-r0.3.21.so`];

describe("whether PyTorch is a peer", () => {
  it("is one with OpenBLAS or MKL near the machine's rate", () => {
    expect(findFault({ libraries: openblas, hasMkl: false, gflops: 170, peakGflops: 205 })).toBeNull();
    expect(findFault({ libraries: [], hasMkl: true, gflops: 150, peakGflops: 205 })).toBeNull();
    expect(nameBlas({ libraries: openblas, hasMkl: false })).toBe("OpenBLAS 0.3.21");
  });

  it("is no peer with another libblas.so.3, even beside OpenBLAS and however fast", () => {
    const fault = findFault({ libraries: reference, hasMkl: false, gflops: 170, peakGflops: 205 });
    expect(fault).toContain("blas/libblas.so.3.11.0");
    expect(fault).toContain("libopenblas0-pthread");
  });

  it("is no peer far below the machine's rate, with any library", () => {
    const slow = { gflops: 2.5, peakGflops: 205 };
    expect(findFault({ libraries: openblas, hasMkl: false, ...slow })).toContain("2.50 GFLOP/s");
    expect(findFault({ libraries: [], hasMkl: true, ...slow })).toContain("MKL");
    // If the system does not name the library, the rate decides.
    expect(findFault({ libraries: [], hasMkl: false, ...slow })).toContain("an unknown library");
    expect(findFault({ libraries: [], hasMkl: false, gflops: 170, peakGflops: 205 })).toBeNull();
    expect(findFault({ libraries: openblas, hasMkl: false, gflops: 81, peakGflops: 205 })).not.toBeNull();
    expect(findFault({ libraries: openblas, hasMkl: false, gflops: 83, peakGflops: 205 })).toBeNull();
    expect(findFault({ libraries: openblas, hasMkl: false, gflops: Number.NaN, peakGflops: 205 })).not.toBeNull();
  });
});

describe("OpenBLAS' folder", () => {
  it("is found by its own libblas.so.3, not by the system's link", () => {
    const root = mkdtempSync(join(tmpdir(), "cria-blas-"));
    try {
      const make = (...path: string[]) => {
        mkdirSync(join(root, ...path), { recursive: true });
        writeFileSync(join(root, ...path, "libblas.so.3"), "");
      };
      make("x86_64-linux-gnu");
      make("x86_64-linux-gnu", "blas");
      expect(findOpenBlas(root)).toBeNull();
      make("x86_64-linux-gnu", "openblas-pthread");
      expect(findOpenBlas(root)).toBe(join(root, "x86_64-linux-gnu", "openblas-pthread"));
      expect(findOpenBlas(join(root, "nowhere"))).toBeNull();
    } finally {
      rmSync(root, { recursive: true });
    }
  });

  it("comes first in the search path of PyTorch's process, which has the threads that it is given", async () => {
    const root = mkdtempSync(join(tmpdir(), "cria-python-"));
    const python = join(root, "python3");
    writeFileSync(
      python,
      '#!/bin/sh\nread line\necho "{\\"path\\":\\"$LD_LIBRARY_PATH\\",\\"threads\\":\\"$OPENBLAS_NUM_THREADS\\"}"\n',
    );
    chmodSync(python, 0o755);
    const peer = new TorchPeer({ python, threads: 3 }, "check_peer.py", "/openblas");
    try {
      const { path, threads } = await peer.ask<{ path: string; threads: string }>({ do: "describe" });
      expect(path.split(":")[0]).toBe("/openblas");
      expect(threads).toBe("3");
    } finally {
      peer.close();
      rmSync(root, { recursive: true });
    }
  });
});
