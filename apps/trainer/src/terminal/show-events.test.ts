import { stripVTControlCharacters } from "node:util";
import type { Finding, Report } from "@cria/trainer";
import { afterEach, expect, it, vi } from "vitest";
import { showEvents } from "./show-events.js";

const { isTTY, columns } = process.stderr;
afterEach(() => {
  Object.assign(process.stderr, { isTTY, columns });
  vi.restoreAllMocks();
});

/** The output on a terminal, or elsewhere. */
function show(terminal: { isTTY: boolean; columns?: number }, work: (report: Report) => void): string {
  Object.assign(process.stderr, terminal);
  let written = "";
  vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    written += text;
    return true;
  });
  work(showEvents());
  return stripVTControlCharacters(written);
}

/** A training of three steps, one second apart, because bars are not redrawn more often. */
const train = (report: Report) => {
  let now = 0;
  vi.spyOn(performance, "now").mockImplementation(() => (now += 10_000));
  report({ type: "progress", work: "train", done: 0, total: 3, unit: "items", isEnd: false });
  for (const [i, success] of [0, 0.5, 1].entries()) {
    const metrics = {
      "reward/score/mean": success,
      "critic/rewards/mean": success - 0.25,
      "tool_call_counts/mean": 2,
      "agent_loop/tool_error_rate": 0.25,
      "perf/throughput": 1700,
    };
    report({ type: "step", work: "train", step: i + 1, total: 3, metrics, heldOut: 0.125 });
  }
};

it("a training has a curve of its success on a terminal, and the share of tool calls that went well", () => {
  const drawn = show({ isTTY: true, columns: 160 }, train);
  expect(drawn).toContain("▁▅█ reward 0.750 · success 1.00 (held out 0.13) · tools 75 % · 1.7k tok/s");
  const plain = show({ isTTY: false }, train);
  expect(plain).toContain("reward 0.750 · success 1.00 (held out 0.13) · tools 75 %");
  expect(plain).not.toMatch(/[▁▅]/);
});

it("names the sampling of a validation that differs from the steps'", () => {
  const validated = { type: "validated", step: 0, success: 0, loss: null, failed: 0, conversations: 4 } as const;
  const greedy = show({ isTTY: false }, (report) => {
    report({ type: "progress", work: "validate", done: 0, total: 4, unit: "items", isEnd: false });
    report({ ...validated, temperature: 0 });
    train(report);
  });
  expect(greedy).toContain("success greedy 0.000");
  expect(greedy).toContain("success sampled 1.00 (held out greedy 0.13)");
  const sampled = show({ isTTY: false }, (report) => {
    report({ ...validated, temperature: 1 });
    train(report);
  });
  expect(sampled).toContain("success 1.00 (held out 0.13)");
});

it("prints reward and success once if they are equal", () => {
  const metrics = { "reward/score/mean": 0.5, "critic/rewards/mean": 0.5, "perf/throughput": 10 };
  const plain = show({ isTTY: false }, (report) => {
    report({ type: "progress", work: "train", done: 0, total: 1, unit: "items", isEnd: false });
    report({ type: "step", work: "train", step: 1, total: 1, metrics, heldOut: null });
  });
  expect(plain).toMatch(/ success 0\.50 · 10 tok\/s/);
  expect(plain).not.toContain("reward");
});

it("a finding of the coach stands between the bars, with the command that shows it, and acts on no terminal", () => {
  const finding: Finding = {
    rule: "dead_tool",
    severity: "high",
    sentence: "92 % of the tool calls fail, mostly in \x1b]0;x\x07.",
    remedy: "Try the tool alone.",
    keys: [],
    evidence: [{ dump: "validation-5", filter: "tool_errors>0", conversations: [] }],
    steps: [[5, 5]],
    holds: true,
  };
  let raw = "";
  show({ isTTY: false }, (report) => {
    report({ type: "problem", problem: finding, runPath: "runs/p/e" });
    raw = vi
      .mocked(process.stderr.write)
      .mock.calls.map(([text]) => text)
      .join("");
  });
  expect(raw).toContain("high dead_tool: 92 % of the tool calls fail, mostly in \\x1b]0;x\\x07");
  expect(raw).toContain("cria show runs/p/e --validation --step 5 --filter 'tool_errors>0' --worst 1");
});
