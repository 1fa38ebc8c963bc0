import { stripVTControlCharacters } from "node:util";
import { afterEach, describe, expect, it, vi } from "vitest";
import { Progress } from "./progress.js";

const { isTTY, columns } = process.stderr;
afterEach(() => {
  Object.assign(process.stderr, { isTTY, columns });
  vi.restoreAllMocks();
});

function draw(terminal: { isTTY: boolean; columns?: number }, work: (progress: Progress) => void): string {
  Object.assign(process.stderr, terminal);
  let written = "";
  vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    written += text;
    return true;
  });
  work(new Progress({ label: "train", total: 120 }));
  return written;
}

const note = "reward 0.438 · success 0.44 (held out 1.00) · 1.7k tok/s · grad 0.09";

describe("the progress bar", () => {
  it.each([60, 80, 100, 200])("stays on one line of %i columns", (width) => {
    const written = draw({ isTTY: true, columns: width }, (progress) => progress.update(120, note));
    const line = stripVTControlCharacters(written).replace("\r", "");
    expect(line.length).toBeLessThan(width);
    expect(line).not.toContain("\n");
    expect(line).toMatch(/^train █+ 120\/120/);
    expect(line.includes("grad 0.09")).toBe(width >= 100);
  });

  it("prints whole lines without redrawing, and leaves a clean line for other text", () => {
    expect(draw({ isTTY: false }, (progress) => progress.update(120, note))).toMatch(/grad 0\.09\n$/);
    const written = draw({ isTTY: true, columns: 80 }, (progress) => {
      progress.update(1, note);
      progress.clear();
    });
    expect(written.endsWith("\r\x1b[2K")).toBe(true);
    expect(draw({ isTTY: false }, (progress) => progress.clear())).toBe("");
  });
});
