import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { RunFolder, writeAtomically } from "./run-folder.js";

const root = mkdtempSync(join(tmpdir(), "cria-run-folder-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe("the run folder", () => {
  it("replaces a file whole or not at all, and leaves no temporary one", async () => {
    const folder = join(root, "atomic");
    mkdirSync(join(folder, "taken"), { recursive: true });
    await writeAtomically(join(folder, "a.json"), "1");
    await writeAtomically(join(folder, "a.json"), "2");
    expect(readFileSync(join(folder, "a.json"), "utf8")).toBe("2");
    await expect(writeAtomically(join(folder, "taken"), "3")).rejects.toMatchObject({
      code: "data/write-failed",
      subject: join(folder, "taken"),
    });
    expect(readdirSync(folder).sort()).toEqual(["a.json", "taken"]);
  });

  it("that cannot be made is an error with a remedy", async () => {
    writeFileSync(join(root, "a-file"), "");
    await expect(RunFolder.create(join(root, "a-file", "run"))).rejects.toMatchObject({
      code: "data/write-failed",
      remedy: expect.stringContaining("default_local_dir"),
    });
  });
});
