import { describe, expect, it } from "vitest";
import type { Finding } from "./finding.js";
import { ProblemLog } from "./problem-log.js";

const find = (rule: string, step: number, severity: Finding["severity"] = "high"): Finding => ({
  rule,
  severity,
  sentence: `${rule} is so.`,
  remedy: "Do something.",
  keys: [],
  evidence: [{ dump: String(step), filter: null, conversations: [] }],
  steps: [[step, step]],
  holds: true,
});
/** A log of what held after which steps. */
function fill(steps: Record<number, string[]>, log = new ProblemLog()): ProblemLog {
  for (const [step, rules] of Object.entries(steps))
    log.note(
      Number(step),
      rules.map((rule) => find(rule, Number(step))),
    );
  return log;
}
const describeAll = (log: ProblemLog) => log.all.map(({ rule, steps }) => [rule, steps]);

describe("a log of problems", () => {
  it("has the steps of each problem", () => {
    const log = fill({ 5: ["a"], 6: ["a", "b"], 7: [], 9: ["a"], 10: ["a"] });
    expect(describeAll(log)).toEqual([
      [
        "a",
        [
          [5, 6],
          [9, 10],
        ],
      ],
      ["b", [[6, 6]]],
    ]);
    // The end of a run is judged once more.
    log.note(10, [find("a", 10)]);
    expect(describeAll(log)[0]).toEqual([
      "a",
      [
        [5, 6],
        [9, 10],
      ],
    ]);
  });

  it("lists current and past problems by severity; current ones first within one severity", () => {
    const log = fill({ 5: ["past", "now"], 6: ["now"] });
    const listed = log.list([find("mild", 7, "low"), find("now", 7)]);
    expect(listed).toMatchObject([
      { rule: "now", holds: true, steps: [[5, 7]], sentence: "now is so." },
      { rule: "past", holds: false, sentence: "past is so (at step 5, no longer).", evidence: [{ dump: "5" }] },
      { rule: "mild", holds: true, steps: [[7, 7]] },
    ]);
    const often = fill({ 1: ["a"], 3: ["a"], 5: ["a"], 6: ["a"], 8: ["a"] });
    expect(often.list([])[0]!.sentence).toBe("a is so (among others at steps 3, 5 to 6 and 8, no longer).");
  });

  it("goes on from a file, up to the step from which a run goes on; a wrong file is ignored", () => {
    const file = JSON.parse(JSON.stringify(fill({ 5: ["a"], 6: ["a"], 7: ["a", "b"] }).all));
    expect(describeAll(fill({ 7: ["a"] }, new ProblemLog(file, 6)))).toEqual([["a", [[5, 7]]]]);
    for (const other of [undefined, null, {}, [{ rule: 3 }], "x"]) expect(new ProblemLog(other).all).toEqual([]);
  });
});
