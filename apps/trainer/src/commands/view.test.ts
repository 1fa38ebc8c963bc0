import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { GroupPage } from "@cria/viewer/api";
import { runCommand } from "citty";
import { afterAll, describe, expect, it } from "vitest";
import { captureOutput } from "../testing/capture-output.js";
import { makeDumpLine } from "../view/testing/make-dump-line.js";
import { writeStatic } from "../view/write-static.js";
import { viewCommand } from "./view.js";

const root = mkdtempSync(join(tmpdir(), "cria-view-command-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const output = captureOutput();

const encoder = new TextEncoder();
const assets = new Map([
  [
    "index.html",
    { content: encoder.encode("<html><head><title>x</title></head></html>"), type: "text/html", isHashed: false },
  ],
  ["assets/a.js", { content: encoder.encode("1"), type: "text/javascript", isHashed: true }],
]);

function writeRun(name: string, uids: readonly string[]): string {
  mkdirSync(join(root, name, "rollouts"), { recursive: true });
  writeFileSync(join(root, name, "metrics.jsonl"), '{"training/global_step":1}\n');
  writeFileSync(join(root, name, "rollouts", "1.jsonl"), uids.map((uid) => makeDumpLine({ uid })).join(""));
  return join(root, name);
}

describe("cria view --static", () => {
  it("writes the app and the answer of each address, for any names of prompts", async () => {
    const run = writeRun("run", [
      "sums/0",
      "..",
      "x".repeat(400),
      ...Array.from({ length: 250 }, (_, i) => `sums/n${i}`),
    ]);
    const out = join(root, "site");
    const progress: number[] = [];
    const count = await writeStatic({
      folders: [run],
      out,
      assets,
      onProgress: (done, total) => progress.push(done / total),
    });
    expect(progress.at(-1)).toBe(1);
    expect(count).toBe(progress.length);
    const read = <T>(...path: string[]) => JSON.parse(readFileSync(join(out, "data", ...path), "utf8")) as T;
    expect(readFileSync(join(out, "index.html"), "utf8")).toMatch(/<head><meta name="cria-static"/);
    expect(read("runs.json")).toMatchObject([{ id: "run" }]);
    expect(readdirSync(join(out, "data", "runs", "run")).sort()).toEqual(
      ["dumps", "environment.json", "live.json", "metrics.json", "prompts", "prompts.json"].sort(),
    );
    // All groups: there is no server to ask for further pages.
    expect(read<GroupPage>("runs", "run", "dumps", "1.json").groups).toHaveLength(253);
    expect(read("runs", "run", "dumps", "1", "groups", "sums%2F0.json")).toMatchObject({ group: { uid: "sums/0" } });
    expect(read("runs", "run", "dumps", "1", "episodes", "0.json")).toMatchObject({ entry: { line: 0 } });
    expect(readdirSync(out).sort()).toEqual(["assets", "data", "index.html"]);
    await expect(writeStatic({ folders: [run], out, assets })).rejects.toMatchObject({
      code: "config/bad-argument",
      subject: expect.stringContaining("site"),
    });
  });

  it("ends by its signal", async () => {
    const run = writeRun("ended", ["a"]);
    const given = {
      folders: [run],
      out: join(root, "stopped"),
      assets,
      signal: AbortSignal.abort(new Error("enough")),
    };
    await expect(writeStatic(given)).rejects.toThrow("enough");
  });
});

describe("cria view", () => {
  it("names a missing folder and a wrong port", async () => {
    const view = (...rawArgs: string[]) => runCommand(viewCommand as never, { rawArgs });
    await view(join(root, "nowhere"));
    expect(output.stderr).toMatch(/nowhere: /);
    await view(root, "--port", "70000");
    expect(output.stderr).toMatch(/--port/);
    expect(process.exitCode).toBe(1);
    process.exitCode = 0;
  });
});
