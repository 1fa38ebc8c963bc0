import { afterEach, describe, expect, it, vi } from "vitest";
import type { Machine } from "./machine.js";
import { writeHeadline } from "./pages/headline.js";
import { formatRows } from "./pages/tables.js";
import { makeReport, printReport } from "./report.js";
import type { Row } from "./row.js";

const machine: Machine = {
  kind: "some-kind",
  cpu: "some CPU",
  threads: 2,
  cores: 2,
  memory: 24,
  gpu: null,
  node: "v20.0.0",
  cpuKernel: "avx2",
  ggmlBuild: "haswell",
};
const row: Row = {
  case: "embedded policy, full",
  metric: "tokens per second of forward, backward and step, median",
  ours: 30110,
  peers: { PyTorch: 717, other: 15055 },
  target: "at least 1.5 times PyTorch's",
  met: true,
};
const fault = "its products are libblas.so.3's, 2.50 GFLOP/s";

afterEach(() => vi.restoreAllMocks());

describe("a report", () => {
  it("has ratios of ours over each peer", () => {
    const [made] = makeReport("train", { rows: [row] }, machine, "abc1234").rows;
    expect(made).toMatchObject({ ratio: { other: 2 }, met: true, commit: "abc1234" });
    expect(made!.ratio.PyTorch).toBeCloseTo(42, 1);
  });

  it("has the reason in the place of a ratio to a crippled peer, and judges no target by it", () => {
    const report = makeReport("train", { rows: [{ ...row, crippled: { PyTorch: fault } }] }, machine, "abc1234");
    expect(report.rows[0]!.ratio).toEqual({ PyTorch: `peer crippled: ${fault}`, other: 2 });
    expect(report.rows[0]!.met).toBeNull();

    const printed = vi.spyOn(console, "log").mockImplementation(() => {});
    printReport(report);
    const text = printed.mock.calls.map(([line]) => line).join("\n");
    expect(text).toContain(`peer crippled: ${fault}`);
    expect(text).toContain("not judged");
    for (const shown of [text, formatRows(report), writeHeadline([report]).join("\n"), JSON.stringify(report)])
      expect(shown).not.toMatch(/\b4[12](\.\d+)?\b/);
    expect(formatRows(report)).toContain(`peer crippled: ${fault}`);
    expect(writeHeadline([report]).join("\n")).toContain("no ratio to PyTorch");
  });

  it("says in which setting each side was", () => {
    const used = (setting: string) => ({ used: setting, tried: {} });
    const settings = { ours: used("flash attention off, 2 threads"), other: used("flash attention on, 1 thread") };
    const table = formatRows(makeReport("decode", { rows: [{ ...row, settings }] }, machine, "abc1234"));
    expect(table).toContain("30110, fa off, 2 t");
    expect(table).toContain("other: 15055, fa on, 1 t (ratio 2.00)");
  });
});
