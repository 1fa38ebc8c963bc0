import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it, vi } from "vitest";
import { drawBar, drawSparkline, drawSvgChart } from "./draw-chart.js";
import { runDemo } from "./run-demo.js";

const cwd = mkdtempSync(join(tmpdir(), "cria-demo-"));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));
afterEach(() => vi.restoreAllMocks());

describe("the demo", () => {
  it("measures, trains, measures again, reports, and writes exactly the summary", async () => {
    let text = "";
    vi.spyOn(console, "log").mockImplementation((line) => {
      text += `${line}\n`;
    });
    vi.spyOn(process.stderr, "write").mockReturnValue(true);
    const summary = await runDemo({
      seed: 2,
      steps: 1,
      overrides: [
        "trainer.threads=1",
        "data.val_max_samples=24",
        "data.train_batch_size=4",
        "actor_rollout_ref.rollout.n=4",
      ],
      cwd,
      silent: false,
    });
    const file = join(cwd, "runs", "demo", "summary.json");
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual(summary);
    const share = expect.toSatisfy((x: number) => x >= 0 && x <= 1 && Number.isInteger(x * 24));
    const positive = expect.toSatisfy((x: number) => x > 0 && Number.isFinite(x));
    expect(summary).toEqual({
      model: expect.stringMatching(/cria-tiny\.gguf$/),
      seed: 2,
      steps: 1,
      before: { sampled: share, greedy: share },
      after: { sampled: share, greedy: share },
      seconds: { total: positive, rollout: positive, train: positive, eval: positive },
      tokens_per_second: { rollout: positive, train: positive },
    });
    expect(summary.seconds.total).toBeGreaterThanOrEqual(
      summary.seconds.rollout + summary.seconds.train + summary.seconds.eval,
    );
    for (const part of ["success on 24 held-out problems", "run folder", "next"]) expect(text).toContain(part);
    for (const name of ["config.json", "metrics.jsonl", "rollouts/1.jsonl", "adapter.gguf", "success.svg"])
      expect(existsSync(join(cwd, "runs", "demo", name)), name).toBe(true);
  });
});

describe("charts", () => {
  it("bars and sparklines cover 0 to 1, and values beyond", () => {
    expect(drawSparkline([0, 0.5, 1, 2, -1])).toBe("▁▅██▁");
    expect([0, 0.5, 1, 7].map((share) => drawBar(share, 4))).toEqual(["····", "██··", "████", "████"]);
  });

  it("the SVG holds one point for each value, higher values higher up", () => {
    const svg = drawSvgChart("title", [{ name: "s", color: "red", points: [0, 0.5, 1].map((y, x) => ({ x, y })) }]);
    const points = /polyline points="([^"]*)"/
      .exec(svg)![1]!
      .split(" ")
      .map((p) => p.split(",").map(Number));
    expect(points.map(([x]) => x)).toEqual([48, 320, 592]);
    expect(points.map(([, y]) => y)).toEqual([272, 160, 48]);
  });

  it("draws two measurements as points, without a line between them", () => {
    const svg = drawSvgChart("title", [{ name: "s", color: "red", points: [0, 1].map((y, x) => ({ x, y })) }]);
    expect(svg).not.toContain("<polyline");
    const [first, second, legend, ...more] = [...svg.matchAll(/<circle cx="([\d.]+)" cy="([\d.]+)"/g)].map(
      ([, ...place]) => place.map(Number),
    );
    expect([first, second]).toEqual([
      [48, 272],
      [592, 48],
    ]);
    expect(legend![1]).toBeLessThan(48);
    expect(more).toEqual([]);
  });
});
