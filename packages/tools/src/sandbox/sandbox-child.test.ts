import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { JavaScriptSandbox } from "./javascript-sandbox.js";
import { countWorkers } from "./sandbox.js";
import { SandboxChild } from "./sandbox-child.js";

const folder = mkdtempSync(join(tmpdir(), "cria-child-test-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const sandboxes: JavaScriptSandbox[] = [];
afterEach(() => Promise.all(sandboxes.splice(0).map((sandbox) => sandbox.dispose())));
const make = (options: ConstructorParameters<typeof JavaScriptSandbox>[0]) => {
  const sandbox = new JavaScriptSandbox(options);
  sandboxes.push(sandbox);
  return sandbox;
};

const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0);
    // A dead process whose parent has not reaped it still exists.
    return process.platform !== "linux" || !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
};
const limits = { cpuS: 5, timeoutS: 30, outputBytes: 10_000 };
const describeProbe = () => {
  const secret = join(folder, "secret");
  writeFileSync(secret, "the secret");
  return {
    file: new URL("hostile/probe-child.mjs", import.meta.url),
    readable: [new URL(".", import.meta.url).pathname],
    settings: { secret, outputBytes: limits.outputBytes },
    heapMb: 64,
    startTimeoutS: 60,
  };
};

describe("a child process", () => {
  it("has no way out, even for code that has left its interpreter", async () => {
    const child = new SandboxChild(describeProbe());
    await child.becomeReady();
    const { output } = await child.run({ code: "", stdin: "" }, limits);
    child.kill();
    expect(output.split("\n")).toEqual([
      "environment: ",
      "read: ERR_ACCESS_DENIED",
      "list: ERR_ACCESS_DENIED",
      "write: ERR_ACCESS_DENIED",
      "write elsewhere: ERR_ACCESS_DENIED",
      "shell: ERR_ACCESS_DENIED",
      "code from text: EvalError",
      "connect: TypeError",
      "resolve: TypeError",
      "request: TypeError",
      "start a thread: TypeError",
      "globals: undefined,undefined,undefined,undefined,undefined",
    ]);
  });

  it("ends when its process takes more memory than it may, of any kind", async () => {
    const child = new SandboxChild({
      ...describeProbe(),
      file: new URL("hostile/hungry-child.mjs", import.meta.url),
      settings: { outputBytes: 1000, watchedMb: 32, watchdog: new URL("watchdog.mjs", import.meta.url).href },
    });
    await child.becomeReady();
    let peakKb = 0;
    const timer = setInterval(() => {
      if (process.platform !== "linux" || !isAlive(child.pid!)) return;
      peakKb = Math.max(
        peakKb,
        Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1] ?? 0),
      );
    }, 2);
    const outcome = await child.run({ code: "", stdin: "" }, { ...limits, cpuS: 30 });
    clearInterval(timer);
    expect(outcome).toEqual({ status: "memory", output: "before", truncated: false, error: "error: out of memory" });
    // About 60 MiB of Node, 32 of the program and 96 of garbage, and what it took within 10 ms.
    expect(peakKb).toBeLessThan(350 * 1024);
    await child.exited;
  });

  it("ends between two programs when they left more behind than a child may keep", async () => {
    const child = new SandboxChild({
      ...describeProbe(),
      file: new URL("hostile/hoarding-child.mjs", import.meta.url),
      // No program comes near its limit; only their sum does.
      settings: { outputBytes: 1000, watchedMb: 512, watchdog: new URL("watchdog.mjs", import.meta.url).href },
    });
    const program = { code: "60", stdin: "" };
    for (const _ of [1, 2]) {
      await child.becomeReady();
      expect(await child.run(program, limits)).toMatchObject({ status: "ok" });
    }
    await expect(child.becomeReady()).rejects.toThrow(/SIGKILL/);
    await child.exited;
  });

  it.runIf(process.platform === "linux")(
    "has no environment variables, an empty folder, and no open file of ours",
    async () => {
      const sandbox = make({ workers: 1 });
      await sandbox.run("1");
      const [pid] = sandbox.pids;
      expect(readFileSync(`/proc/${pid}/environ`, "utf8")).toBe("");
      expect(readdirSync(`/proc/${pid}/cwd`)).toEqual([]);
      // Its watchdog opens its own stat file now and then, and closes it.
      const open = readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
        try {
          return readlinkSync(`/proc/${pid}/fd/${fd}`);
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
          throw error;
        }
      });
      const own = new RegExp(`^(socket:|pipe:|anon_inode:|/dev/null$|/proc/${pid}/stat$)`);
      expect(open.filter((target) => !own.test(target))).toEqual([]);
    },
  );

  /**
   * Starts another process that runs these statements with a `sandbox`, and waits for the child's id, which it prints.
   */
  const startParent = async (statements: string) => {
    const script = `
      import { createJiti } from "jiti";
      const { JavaScriptSandbox } = await createJiti(${JSON.stringify(import.meta.url)}).import("./javascript-sandbox.ts");
      const sandbox = new JavaScriptSandbox({ cpuS: 600, timeoutS: 600, workers: 1 });
      await sandbox.run("1");
      ${statements}`;
    const parent = spawn(process.execPath, ["--conditions=cria-source", "--input-type=module", "-e", script], {
      cwd: fileURLToPath(new URL("../..", import.meta.url)),
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [pid] = (await once(parent.stdout, "data")).map(Number) as [number];
    return { parent, pid };
  };
  const print = "console.log(sandbox.pids[0])";

  it.each([
    ["that runs an endless program", `void sandbox.run("for (;;);", { onStart: () => ${print} });`],
    ["that waits for a program", `${print}; setInterval(() => {}, 1000);`],
  ])("%s ends when its parent is killed", async (_, statements) => {
    const { parent, pid } = await startParent(statements);
    expect(isAlive(pid)).toBe(true);
    parent.kill("SIGKILL");
    await once(parent, "exit");
    await expect.poll(() => isAlive(pid)).toBe(false);
  });

  it("that waits for a program lets its parent end, and ends with it", async () => {
    const { parent, pid } = await startParent(print);
    const [code] = await once(parent, "exit");
    expect(code).toBe(0);
    await expect.poll(() => isAlive(pid)).toBe(false);
  });

  it("is waited for when its sandbox is closed", async () => {
    const { parent, pid } = await startParent(`
      ${print};
      // Nothing keeps the process alive after the close.
      await sandbox.dispose();
      process.exitCode = 7;`);
    const [code] = await once(parent, "exit");
    expect([code, isAlive(pid)]).toEqual([7, false]);
  });

  it("that is killed from outside is replaced", async () => {
    const sandbox = make({ workers: 1 });
    await sandbox.run("1");
    const [first] = sandbox.pids;
    let running: Promise<unknown> | undefined;
    await new Promise<void>((onStart) => {
      running = sandbox.run("for (;;);", { onStart });
    });
    process.kill(first!, "SIGKILL");
    expect(await running).toMatchObject({ status: "crashed", error: "error: the sandbox crashed" });
    expect((await sandbox.run("2")).output).toBe("2\n");
    expect(sandbox.pids).not.toContain(first);
  });

  it("that breaks the protocol is ended", async () => {
    const child = new SandboxChild({ ...describeProbe(), settings: { secret: "/", outputBytes: -20_000 } });
    await expect(child.becomeReady()).rejects.toThrow(/SIGKILL/);
  });
});

describe("a pool", () => {
  it("has as many children as cores and half of the memory allow", () => {
    expect(countWorkers(1e12, 0)).toBe(1);
    expect(countWorkers(16, 1)).toBeGreaterThanOrEqual(1);
    expect(countWorkers(16, 1)).toBeLessThanOrEqual(128);
  });

  it("counts time from when a child takes the program", async () => {
    const sandbox = make({ cpuS: 30, timeoutS: 2, workers: 1 });
    await sandbox.run("1");
    const started: number[] = [];
    const busy = "const end = Date.now() + 600; while (Date.now() < end); 'right'";
    const runs = [0, 1, 2, 3, 4].map((i) => sandbox.run(busy, { onStart: () => started.push(i) }));
    await runs[0];
    expect(started.length).toBeLessThan(3);
    // The last one waits for 2.4 s.
    for (const outcome of await Promise.all(runs)) expect(outcome.output).toBe('"right"\n');
    expect(started).toEqual([0, 1, 2, 3, 4]);
  });

  it("keeps a child whose call is aborted while it starts", async () => {
    const sandbox = make({ workers: 1 });
    const abort = new AbortController();
    const given = sandbox.run("1", { signal: abort.signal });
    while (sandbox.pids.length === 0) await new Promise(setImmediate);
    const { pids } = sandbox;
    abort.abort();
    expect((await given).status).toBe("aborted");
    expect((await sandbox.run("2")).output).toBe("2\n");
    expect(sandbox.pids).toEqual(pids);
  });

  it("leaves nothing behind when it is closed", async () => {
    const sandbox = make({ workers: 2 });
    const runs = [sandbox.run("for (;;);"), sandbox.run("for (;;);"), sandbox.run("1")];
    const closed = Promise.allSettled(runs);
    await expect.poll(() => sandbox.pids.length).toBe(2);
    const { pids } = sandbox;
    await sandbox.dispose();
    expect(pids.some(isAlive)).toBe(false);
    expect((await closed).map(({ status }) => status)).toContain("rejected");
    await expect(sandbox.run("1")).rejects.toMatchObject({ code: "tool/disposed", subject: "sandbox" });
  });
});
