import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { RunLock } from "./run-lock.js";

const folder = mkdtempSync(join(tmpdir(), "cria-lock-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

// Child processes load the built package: `npm test` builds first.
const engine = new URL("../../../../packages/engine/dist/internal.js", import.meta.url).href;

function runChild(code: string) {
  const program = `import { lockFile } from ${JSON.stringify(engine)};\n${code}`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program]);
  let output = "";
  child.stdout.on("data", (text) => {
    output += text;
  });
  child.stderr.on("data", (text) => {
    output += text;
  });
  return { child, output: () => output };
}

describe("the lock of a run folder", () => {
  it("is for one at a time, names its holder, and leaves nothing behind", async () => {
    const run = join(folder, "one");
    const lock = await RunLock.acquire(run);
    await expect(RunLock.acquire(run)).rejects.toMatchObject({
      code: "data/run-in-use",
      received: expect.stringMatching(new RegExp(`process ${process.pid} .*one\\.run\\.lock`)),
    });
    expect(RunLock.isHeld(run)).toBe(true);
    lock.release();
    lock.release();
    expect(RunLock.isHeld(run)).toBe(false);
    (await RunLock.acquire(run)).release();
    expect(existsSync(`${run}.run.lock`)).toBe(false);
  });

  it("ends with a killed process", async () => {
    const run = join(folder, "killed");
    const file = `${run}.run.lock`;
    const { child } = runChild(
      `lockFile(${JSON.stringify(file)}); console.log("locked"); setInterval(() => {}, 1000);`,
    );
    await once(child.stdout, "data");
    await expect(RunLock.acquire(run)).rejects.toMatchObject({ code: "data/run-in-use" });
    child.kill("SIGKILL");
    await once(child, "close");
    expect(existsSync(file)).toBe(true);
    expect(RunLock.isHeld(run)).toBe(false);
    (await RunLock.acquire(run)).release();
  });

  it("is not held by a process of another machine, nor without a name", () => {
    const run = join(folder, "left");
    writeFileSync(`${run}.run.lock`, `process ${process.ppid} on elsewhere`);
    expect(RunLock.isHeld(run)).toBe(false);
    writeFileSync(`${run}.run.lock`, "");
    expect(RunLock.isHeld(run)).toBe(false);
  });

  it("never has two holders, however many want it at once", async () => {
    const file = join(folder, "wanted.run.lock");
    // The lock's holder creates a file that must not exist yet.
    const code = `
      import { openSync, closeSync, unlinkSync } from "node:fs";
      for (let had = 0; had < 100; ) {
        const release = lockFile(${JSON.stringify(file)});
        if (!release) { await new Promise((resolve) => setImmediate(resolve)); continue; }
        closeSync(openSync(${JSON.stringify(`${file}.held`)}, "wx"));
        unlinkSync(${JSON.stringify(`${file}.held`)});
        release();
        had++;
      }`;
    const children = Array.from({ length: 3 }, () => runChild(code));
    const codes = await Promise.all(children.map(async ({ child }) => (await once(child, "close"))[0]));
    expect(children.map(({ output }) => output())).toEqual(["", "", ""]);
    expect(codes).toEqual([0, 0, 0]);
  });
});
