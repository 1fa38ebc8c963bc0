import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { forgetEnd, recordEnd } from "./run-end.js";
import { RunFolder } from "./run-folder.js";

const root = mkdtempSync(join(tmpdir(), "cria-end-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe("the end of a run", () => {
  it("is noted in its folder, and forgotten when it goes on", async () => {
    const folder = await RunFolder.create(join(root, "run"));
    const file = folder.file("end.json");
    const read = () => JSON.parse(readFileSync(file, "utf8"));
    const failure = { error: new Error("no room") };

    await recordEnd(folder, undefined, failure);
    expect(read()).toMatchObject({ status: "failed", error: "no room" });

    await forgetEnd(folder);
    expect(existsSync(file)).toBe(false);
    await recordEnd(folder, undefined);
    expect(read()).toMatchObject({ status: "ended", error: null });

    await recordEnd(folder, AbortSignal.abort(), failure);
    expect(read()).toMatchObject({ status: "interrupted", error: null });
  });
});
