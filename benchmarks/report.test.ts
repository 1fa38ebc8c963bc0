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

  it("has the SHA-256 of what was made, on the page, in the terminal and in the file", () => {
    const digests = ["a".repeat(64), "b".repeat(64)];
    const report = makeReport("async", { rows: [{ ...row, digests }] }, machine, "abc1234");
    const printed = vi.spyOn(console, "log").mockImplementation(() => {});
    printReport(report);
    const text = printed.mock.calls.map(([line]) => line).join("\n");
    for (const shown of [text, formatRows(report), JSON.stringify(report)])
      for (const digest of digests) expect(shown).toContain(digest);
    expect(formatRows(makeReport("train", { rows: [row] }, machine, "abc1234"))).not.toContain("`");
  });

  it("names the setting of each side", () => {
    const used = (setting: string) => ({ used: setting, tried: {} });
    const settings = { ours: used("flash attention off, 2 threads"), other: used("flash attention on, 1 thread") };
    const table = formatRows(makeReport("decode", { rows: [{ ...row, settings }] }, machine, "abc1234"));
    expect(table).toContain("30110, fa off, 2 t");
    expect(table).toMatch(/other +\|/);
    expect(table).toContain("15055, fa on, 1 t (2.00)");
  });
});

describe("the headline", () => {
  const tried = { "flash attention on, 2 threads": 1, "flash attention off, 2 threads": 2 };
  const off = { used: "flash attention off, 2 threads", tried };
  const on = { used: "flash attention on, 2 threads", tried };
  const peers = { "llama-batched-bench": 50, "node-llama-cpp": 25 };
  const settings = { ours: off, "llama-batched-bench": on, "node-llama-cpp": on };
  const make = (title: string, metric: string, ours: number, others: Row["peers"]): Row => ({
    case: title,
    metric: `tokens per second, deterministic: ${metric}`,
    ours,
    peers: others,
    settings,
    target: null,
    met: null,
  });

  it("compares what is the default, in the better setting of each side, and names the cost of deterministic", () => {
    const rows = [
      make("model F16, 1 sequence", "true", 75, { ...peers, "ours, deterministic: false": 300 }),
      make("model F16, 1 sequence", "false", 300, peers),
      // This type is measured beside the limit alone.
      make("model Q4_0, 8 sequences", "true", 100, { "llama-batched-bench": 50 }),
    ];
    const lines = writeHeadline([makeReport("decode", { rows }, machine, "abc1234")]);
    expect(lines[0]).toContain(
      "1.50 to 2.00 times llama-batched-bench (median 1.75 of 2) and 3.00 times node-llama-cpp.",
    );
    expect(lines[1]).toContain("ours flash attention off in 2; llama-batched-bench flash attention on in 2");
    expect(lines[1]).toContain("node-llama-cpp flash attention on in 1.");
    expect(lines[2]).toContain("0.250 of the speed without it with one sequence.");
    const free = make("model F16, 1 sequence", "false", 300, peers);
    expect(writeHeadline([makeReport("decode", { rows: [free] }, machine, "abc1234")])).toEqual([]);
  });
});
