import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import type { Report } from "../report.js";
import { readResults, saveReport } from "./results.js";
import { renderPages } from "./write-pages.js";

const root = join(import.meta.dirname, "..", "..");
const folder = mkdtempSync(join(tmpdir(), "cria-results-"));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("README.md and docs/", () => {
  it.each([...renderPages(readResults())])("%s shows what results/ holds", (path, text) => {
    // Else: npm run bench -- pages
    expect(readFileSync(join(root, path), "utf8")).toBe(text);
  });

  it("have every kind of machine in performance.md", () => {
    const page = readFileSync(join(root, "docs", "performance.md"), "utf8");
    for (const [kind, reports] of readResults()) {
      expect(page).toContain(`### ${kind}\n`);
      for (const { machine } of reports) expect(machine.kind).toBe(kind);
    }
  });
});

describe("a kept result", () => {
  const machine = { ...[...readResults().values()][0]![0]!.machine, kind: "some-kind" };
  const row = { metric: "m", peers: {}, ratio: {}, target: null, met: null };
  const report = (commit: string, figures: Record<string, number>): Report => ({
    name: "decode",
    machine,
    peerChecks: [],
    rows: Object.entries(figures).map(([title, ours]) => ({ ...row, case: title, ours, commit })),
  });

  it("lies in its machine's folder, and cases that were left out stay with their commits", () => {
    saveReport(report("first", { a: 1, b: 2 }), {}, folder);
    saveReport(report("second", { b: 3, c: 4 }), { keepOthers: true }, folder);
    const [kept] = readResults(folder).get("some-kind")!;
    expect(kept!.rows.map(({ case: title, ours, commit }) => [title, ours, commit])).toEqual([
      ["a", 1, "first"],
      ["b", 3, "second"],
      ["c", 4, "second"],
    ]);
    saveReport(report("third", { c: 5 }), {}, folder);
    expect(readResults(folder).get("some-kind")![0]!.rows).toHaveLength(1);
  });
});

describe("npm run bench", () => {
  it("starts without pnpm, and beside one that refuses to run", () => {
    const bin = mkdtempSync(join(tmpdir(), "cria-bin-"));
    try {
      writeFileSync(join(bin, "pnpm"), "#!/bin/sh\necho refused >&2\nexit 1\n");
      chmodSync(join(bin, "pnpm"), 0o755);
      const path = [bin, dirname(process.execPath), "/usr/bin", "/bin"].join(delimiter);
      const options = { cwd: root, env: { ...process.env, PATH: path }, encoding: "utf8", stdio: "pipe" } as const;
      // Without a name it lists the benchmarks.
      const output = execFileSync("sh", ["-c", "npm run bench 2>&1"], options);
      expect(output).toContain("benchmarks: algorithms, async, busy, cluster, decode");
      expect(output).not.toContain("refused");
    } finally {
      rmSync(bin, { recursive: true });
    }
  });
});
