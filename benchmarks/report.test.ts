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
  const make = (title: string, ours: number, settings: Row["settings"]): Row[] => [
    { case: title, metric: "tokens per second, deterministic: false", ours, peers, settings, target: null, met: null },
    {
      case: title,
      metric: "tokens per second, deterministic: true",
      ours: ours / 4,
      peers: { ...peers, "ours, deterministic: false": ours },
      settings,
      target: null,
      met: null,
    },
  ];

  it("compares the better settings of each side, and names them and the cost of deterministic", () => {
    const both = { ours: off, "llama-batched-bench": on, "node-llama-cpp": on };
    const single = { used: on.used, tried: {} };
    const old = { ours: single, "llama-batched-bench": single, "node-llama-cpp": single };
    const rows = [...make("model, 1 sequence", 75, both), ...make("model, 8 sequences", 5000, old)];
    const lines = writeHeadline([makeReport("decode", { rows }, machine, "abc1234")]);
    expect(lines[0]).toContain("each side in its better setting: 1.50 times llama-batched-bench and 3.00 times");
    expect(lines[1]).toContain("ours flash attention off in 1; llama-batched-bench flash attention on in 1");
    expect(lines[2]).toContain("0.250 of that speed with one sequence.");
    expect(writeHeadline([makeReport("decode", { rows: make("m", 5000, old) }, machine, "abc1234")])[0]).toContain(
      "each side in a single setting: 100 times",
    );
  });
});
