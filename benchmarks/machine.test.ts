import { describe, expect, it } from "vitest";
import { nameKind, parseCpuinfo } from "./machine.js";

const amd = `processor\t: 0
vendor_id\t: AuthenticAMD
cpu family\t: 25
model\t\t: 1
model name\t: AMD EPYC 7763 64-Core Processor
physical id\t: 0
core id\t\t: 0
flags\t\t: fpu sse2 avx fma avx2

processor\t: 1
vendor_id\t: AuthenticAMD
cpu family\t: 25
model\t\t: 1
model name\t: AMD EPYC 7763 64-Core Processor
physical id\t: 0
core id\t\t: 0
flags\t\t: fpu sse2 avx fma avx2
`;

describe("the kind of a machine", () => {
  it("is made of maker, architecture, vectors and threads, for any name of the model", () => {
    expect(nameKind(parseCpuinfo(amd, ""), 2, null)).toBe("amd-epyc-zen3-avx2-2c");
    const hidden = amd.replaceAll("AMD EPYC 7763 64-Core Processor", "AMD EPYC");
    expect(nameKind(parseCpuinfo(hidden, ""), 2, null)).toBe("amd-epyc-zen3-avx2-2c");
  });

  it("tells AVX-512 and generations of Intel apart", () => {
    const xeon = {
      model: "Intel(R) Xeon(R) Platinum 8259CL CPU @ 2.50GHz",
      vendor: "GenuineIntel",
      family: 6,
      number: 85,
      flags: ["sse2", "avx", "avx2", "avx512f"],
      cores: 4,
    };
    expect(nameKind(xeon, 8, null)).toBe("intel-xeon-skylake-avx512-8c");
    expect(nameKind({ ...xeon, flags: [...xeon.flags, "avx512_vnni"] }, 8, null)).toBe(
      "intel-xeon-cascadelake-avx512-8c",
    );
    expect(nameKind({ ...xeon, number: 143 }, 8, null)).toBe("intel-xeon-sapphirerapids-avx512-8c");
    expect(nameKind({ ...xeon, number: 250 }, 8, null)).toBe("intel-xeon-f6m250-avx512-8c");
  });

  it("names a GPU, and machines without cpuid", () => {
    expect(nameKind(parseCpuinfo(amd, ""), 16, "NVIDIA H200")).toBe("amd-epyc-zen3-avx2-16c-nvidia-h200");
    const arm = parseCpuinfo("processor\t: 0\nCPU part\t: 0xd0c\nFeatures\t: fp asimd aes\n", "unknown");
    expect(nameKind(arm, 4, null)).toBe("arm-part-0xd0c-neon-4c");
    const apple = { model: "Apple M2 Pro", vendor: "", family: null, number: null, flags: ["arm64"], cores: null };
    expect(nameKind(apple, 10, null)).toBe("apple-m2-pro-neon-10c");
  });

  it("counts cores that two threads share", () => {
    expect(parseCpuinfo(amd, "").cores).toBe(1);
    expect(
      parseCpuinfo(amd.replace(/core id\t\t: 0\n([\s\S]*)core id\t\t: 0/, "core id\t\t: 0\n$1core id\t\t: 1"), "")
        .cores,
    ).toBe(2);
  });
});
