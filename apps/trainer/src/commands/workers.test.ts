import { once } from "node:events";
import { PassThrough } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import { type JobBus, type JobKind, LocalHub, openLocalBus, openNatsBus } from "@cria/cluster";
import { describeWithNats, NatsServer, smallBounds } from "@cria/cluster/testing";
import { ClusterError } from "@cria/core";
import { runCommand as runCitty } from "citty";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { type BusState, followBusState, readBusState } from "../cluster/bus-state.js";
import { drawBus } from "../cluster/draw-bus.js";
import { watchBusOnScreen } from "../cluster/watch-bus.js";
import { captureOutput } from "../testing/capture-output.js";
import { checkCommandLine } from "./check-command-line.js";
import { workersCommand } from "./workers.js";

const output = captureOutput();

/** Runs the command in this process; returns its exit code. */
async function run(...rawArgs: string[]): Promise<number> {
  await runCitty(workersCommand as never, { rawArgs });
  return Number(process.exitCode ?? 0);
}

const count = z.object({ row: z.int() });
const rollout: JobKind<{ row: number }, { row: number }> = { name: "rollout", payload: count, value: count };
/** A worker with two slots, which never ends a job. */
const join = (bus: JobBus, id: string) =>
  bus.work({
    id,
    class: "avx2",
    versions: { cria: "0.1.0" },
    jobs: [{ kind: rollout, slots: 2, run: () => new Promise(() => undefined) }],
  });
const policy = { run: "b".repeat(64), version: 7, weights: "a".repeat(64) };

describeWithNats("cria workers", () => {
  const server = new NatsServer();
  let coordinator: JobBus;
  beforeAll(async () => {
    await server.start();
    const options = { servers: server.url, prefix: "farm", bounds: smallBounds };
    coordinator = await openNatsBus({ ...options, role: "coordinator" });
    await join(coordinator, "barn");
    await coordinator.publishPolicy(policy);
  });
  afterAll(async () => {
    await coordinator?.close();
    await server.dispose();
  });

  it("lists the workers, and the version of their policy", async () => {
    expect(await run("--bus", server.url, "--prefix", "farm"), output.stderr).toBe(0);
    expect(output.stdout).toMatch(
      new RegExp(`^${server.url} \\(farm\\) {2}1 worker, policy version 7 \\(weights aaaaaaaaaaaa\\)\n`),
    );
    expect(output.stdout).toMatch(/^barn .* avx2 .* rollout 0\/2 .* 0\.1\.0 +ready$/m);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: there is no terminal.
    expect(output.stdout).not.toMatch(/\x1b/);
  });

  it("--json gives the same to programs", async () => {
    expect(await run("--bus", server.url, "--prefix", "farm", "--json"), output.stderr).toBe(0);
    expect(JSON.parse(output.stdout)).toMatchObject({
      bus: { servers: [server.url], prefix: "farm" },
      policy,
      workers: [{ id: "barn", class: "avx2", slots: { rollout: 2 }, doing: [], draining: false }],
    });
  });

  it("says at once that no coordinator has created the bus, with a remedy", async () => {
    expect(await run("--bus", server.url, "--prefix", "other")).toBe(1);
    expect(output.stderr).toMatch(/the bus other: [\s\S]*coordinator/);
  });
});

describe("the options of cria workers", () => {
  it("name an unreachable server in the error, but no password", async () => {
    expect(await run("--bus", "nats://127.0.0.1:1")).toBe(1);
    expect(output.stderr).toMatch(/nats:\/\/127\.0\.0\.1:1: [\s\S]*nats-server/);
    output.stderr = "";
    expect(await run("--bus", "nats://me:s3cret@host:4222")).toBe(1);
    expect(output.stderr).toMatch(/--bus: /);
    expect(output.stderr).not.toContain("s3cret");
  });

  it("need a bus", () => {
    expect(() => checkCommandLine(workersCommand as never, ["--json"], "cria workers")).toThrow(
      expect.objectContaining({
        code: "config/missing-argument",
        subject: "cria workers --bus",
        expected: expect.stringContaining("nats://host:4222"),
      }),
    );
  });
});

describe("following a bus", () => {
  const open = () => {
    const hub = new LocalHub({ ackWaitMs: 1000, presenceMs: 300, leaseMs: 1000 });
    return { coordinator: openLocalBus({ hub }), observer: openLocalBus({ hub }) };
  };

  it("reports workers that join, get work and leave, and a new policy", async () => {
    const { coordinator, observer } = open();
    const states: BusState[] = [];
    const end = new AbortController();
    const following = followBusState(observer, (state) => states.push(structuredClone(state)), end.signal);
    const until = (check: (state: BusState) => boolean) =>
      vi.waitFor(() => expect(states.some(check)).toBe(true), { timeout: 20_000 });
    await until(({ workers, policy }) => workers.length === 0 && policy === null);
    const worker = await join(coordinator, "barn");
    const job = coordinator.submit(rollout, { row: 1 }).catch(() => undefined);
    await until(({ workers }) => workers[0]?.doing.length === 1);
    await coordinator.publishPolicy({ ...policy, version: 1 });
    await until(({ policy }) => policy?.version === 1);
    const before = states.length;
    await worker.close();
    await vi.waitFor(() => expect(states.at(-1)?.workers).toEqual([]), { timeout: 20_000 });
    expect(states.length).toBeGreaterThan(before);
    end.abort();
    await following;
    // Equal states are printed once.
    const texts = states.map((state) => JSON.stringify(state));
    expect(texts.filter((text, i) => text === texts[i - 1])).toEqual([]);
    await Promise.all([coordinator.close(), observer.close(), job]);
  });

  it("ends with the server's reason for a refusal", async () => {
    const { observer } = open();
    const reason = new ClusterError("shut this connection out", { code: "cluster/shut-out", subject: "nats://farm" });
    const closed = { ...observer, closed: AbortSignal.abort(reason) };
    const following = followBusState(closed, () => undefined, new AbortController().signal);
    await expect(following).rejects.toMatchObject({ code: "cluster/shut-out", subject: "nats://farm" });
    await observer.close();
  });

  it("takes the whole screen of a terminal, and restores it on q", async () => {
    const { coordinator, observer } = open();
    const input = Object.assign(new PassThrough(), { isRaw: false, setRawMode: vi.fn() });
    const terminal = Object.assign(new PassThrough(), { columns: 80, rows: 8 });
    let screen = "";
    terminal.on("data", (text) => {
      screen += text;
    });
    const waitFor = async (text: string) => {
      while (!stripVTControlCharacters(screen).includes(text)) await once(terminal, "data");
    };
    const { signal } = new AbortController();
    const options = { name: "nats://farm:4222", input: input as never, output: terminal as never, signal };
    const watching = watchBusOnScreen(observer, options);
    await waitFor("no workers, no policy yet");
    for (let i = 0; i < 9; i++) await join(coordinator, `barn-${i}`);
    await waitFor("… 5 more");
    input.write("q");
    await watching;
    expect(screen.endsWith("\x1b[?1049l")).toBe(true);
    await Promise.all([coordinator.close(), observer.close()]);
  });

  it("writes out control characters, and cuts long texts", async () => {
    const { coordinator, observer } = open();
    await join(coordinator, "barn");
    const state = await readBusState(observer);
    const [worker] = state.workers;
    state.workers = [
      { ...worker!, host: "\x1b[2Jbox", class: "x".repeat(100), failed: 2, draining: true, lacks: ["no model\x07"] },
      { ...worker!, id: "ill", slots: { rollout: 0 }, failed: 5, oldestS: 90, lastFailure: "rollout: no memory\x07" },
      { ...worker!, id: "idle", slots: {}, lacks: ["no user code"] },
    ];
    const lines = drawBus("farm\x07", state, 120).map(stripVTControlCharacters);
    expect(lines[0]).toBe("farm\\x07  3 workers, 1 draining, no policy yet");
    expect(lines[2]).toMatch(/^barn {4}\\x1b\[2Jbox {2}x{23}… {2}rollout 0\/2 +0 +2 +0 +0\.1\.0 +draining$/);
    expect(lines[3]).toBe("  no model\\x07");
    expect(lines[4]).toMatch(/^ill .* rollout 0\/0 +90 s +0 +5 +0 +0\.1\.0 +failing$/);
    expect(lines[5]).toBe("  last failure: rollout: no memory\\x07");
    expect(lines[6]).toMatch(/^idle .* useless$/);
    expect(lines[7]).toBe("  no user code");
    for (const line of drawBus("farm", state, 50))
      expect(stripVTControlCharacters(line).length).toBeLessThanOrEqual(50);
    await Promise.all([coordinator.close(), observer.close()]);
  });
});
