import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as joinPath } from "node:path";
import { makeTinyModel } from "@cria/engine/testing";
import { type RunEvent, train } from "@cria/trainer";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from "vitest";
import type { BusTimes, JobBus } from "../bus/job-bus.js";
import { openBus } from "../bus/open-bus.js";
import { double, join, quickTimes, rollout } from "../testing/bus-contract.js";
import { smallBounds as bounds, describeWithNats, NatsServer } from "../testing/nats-server.js";
import { type RunningWorker, startWorker, type WorkerStatus } from "../worker/start-worker.js";
import { openNatsBus } from "./open-nats-bus.js";
import { openNatsStore } from "./open-nats-store.js";

/** First revision of a new bucket; null: a random one. */
let place: number | null = null;
vi.mock("node:crypto", async (load) => {
  const crypto = await load<typeof import("node:crypto")>();
  const randomInt = (least: number, most: number) =>
    most === 2 ** 39 && place !== null ? place : crypto.randomInt(least, most);
  return { ...crypto, randomInt };
});

const waitFor = <T>(check: () => T | Promise<T>) => vi.waitFor(check, { timeout: 30_000, interval: 20 });

describeWithNats("a server that lost its store", () => {
  let server: NatsServer;
  const buses: JobBus[] = [];
  beforeEach(async () => {
    server = new NatsServer();
    await server.start();
  });
  afterEach(async () => {
    place = null;
    await Promise.all(buses.splice(0).map((bus) => bus.close()));
    await server.dispose();
  });

  /** Empties the disk while the server is down. */
  const emptyDisk = async () => {
    await server.kill();
    server.removeStore();
    await server.start();
  };
  /** Deletes the streams; no connection is lost. */
  const deleteStreams = async () => {
    const connection = await connect({ servers: server.url });
    const { streams } = await jetstreamManager(connection);
    for await (const { config } of streams.list()) await streams.delete(config.name);
    await connection.close();
  };
  const accidents: [string, () => Promise<void>][] = [
    ["whose disk was emptied", emptyDisk],
    ["whose streams were deleted", deleteStreams],
  ];

  async function open(role: "coordinator" | "worker", times: Partial<BusTimes> = {}) {
    const problems: string[] = [];
    const store = await openNatsStore({ servers: server.url, role, times: { ...quickTimes, ...times }, bounds });
    const bus = openBus(store, { onProblem: ({ code }) => problems.push(code) });
    buses.push(bus);
    return { bus, store, problems };
  }

  it.each(accidents)("%s gets its bus anew: jobs, policy, lease and workers go on", async (_, accident) => {
    // Revisions of the new store are smaller than all old ones, and newer nonetheless.
    place = 1000;
    const { bus: coordinator, problems } = await open("coordinator", { leaseMs: 600_000 });
    const { bus: machine, problems: machines } = await open("worker");
    const begun: number[] = [];
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    await join(machine, "a", async (payload, context) => {
      begun.push(payload.row);
      await released;
      return double(payload, context);
    });
    const lease = await coordinator.acquireLease("me");
    const versions: number[] = [];
    await machine.watchPolicy(({ version }) => versions.push(version), new AbortController().signal);
    const sha = "a".repeat(64);
    let policy = await coordinator.publishPolicy({ run: sha, version: 0, weights: sha });
    for (let version = 1; version <= 5; version++)
      policy = await coordinator.publishPolicy({ run: sha, version, weights: sha }, policy);
    const results = [1, 2, 3].map((row) => coordinator.submit(rollout, { row }));
    await waitFor(() => expect(begun).toHaveLength(1));

    const losses: Promise<void>[] = [];
    coordinator.watchLosses(({ restored }) => losses.push(restored), new AbortController().signal);
    place = 10;
    await accident();
    release();
    await coordinator.publishPolicy({ run: sha, version: 6, weights: sha }, policy);
    await waitFor(() => expect(versions.at(-1)).toBe(6));
    expect((await Promise.all(results)).map(({ value }) => value.answer)).toEqual([2, 4, 6]);
    expect((await coordinator.submit(rollout, { row: 4 })).value.answer).toBe(8);
    await Promise.all(losses);
    expect(losses).toHaveLength(1);
    await waitFor(async () => expect((await coordinator.listWorkers()).map(({ id }) => id)).toEqual(["a"]));
    expect(problems.filter((code) => code === "cluster/store-lost")).toHaveLength(1);
    await waitFor(() => expect(machines).toContain("cluster/store-lost"));
    expect(lease.signal.aborted).toBe(false);
  });

  it("has the lease taken again by its holder", async () => {
    const { bus, store } = await open("coordinator", { leaseMs: 3_000 });
    const lease = await bus.acquireLease("me");
    await deleteStreams();
    await waitFor(async () => expect(JSON.parse((await store.control.get("lease"))!.text).holder).toBe("me"));
    expect(lease.signal.aborted).toBe(false);
    await lease.release();
  });

  it("has its lease taken by one of those who want it", async () => {
    const { bus: coordinator } = await open("coordinator", { leaseMs: 3_000 });
    const { bus: standby, store } = await open("coordinator");
    const lease = await coordinator.acquireLease("me");
    const reasons: string[] = [];
    const given = standby.acquireLease("other", undefined, (reason) => reasons.push(reason));
    await waitFor(() => expect(reasons).toEqual(["me coordinates this bus"]));
    await deleteStreams();
    // The first one gets it; the other one gets an error, or waits.
    const holders: string[] = [];
    void given.then(() => holders.push("other"));
    lease.signal.addEventListener("abort", () => holders.push("not me"));
    await waitFor(async () => expect(await store.control.get("lease")).toBeDefined());
    await waitFor(async () => {
      const { holder } = JSON.parse((await store.control.get("lease"))!.text);
      if (holder === "other") expect(holders.sort()).toEqual(["not me", "other"]);
      else expect(holders).toEqual([]);
    });
    if (holders.length === 0) await lease.release();
    await (await given).release();
  });

  it("tells a waiting coordinator the requests and answers, and gives the lead once the bus is there", async () => {
    const { bus } = await open("coordinator");
    await server.kill();
    const reasons: string[] = [];
    const given = bus.acquireLease("me", undefined, (reason) => reasons.push(reason));
    server.removeStore();
    await server.start();
    expect((await given).term).toBe(1);
    for (const reason of reasons) expect(reason).toMatch(/^the bus was asked .+, and answered: ./);
  });

  it("warns of waiting if its disk is gone while it runs", async () => {
    const { bus, problems } = await open("coordinator");
    await bus.blobs.put(new Uint8Array(1000));
    server.removeStore();
    // It still has its files open, and cannot begin another one.
    const big = Array.from({ length: 3 }, (_, i) => bus.blobs.put(new Uint8Array(9_000_000).fill(i)));
    for (const each of big) each.catch(() => undefined);
    await waitFor(() => expect(problems).toContain("cluster/no-answer"));
    await server.kill();
    await server.start();
    const shas = await Promise.all(big);
    expect(await Promise.all(shas.map((sha) => bus.blobs.has(sha)))).toEqual([true, true, true]);
  });
});

describeWithNats("a training over a server that lost its store", () => {
  const STEPS = 5;
  const folder = mkdtempSync(joinPath(tmpdir(), "cria-lost-store-"));
  const prompts = ["a", "bb", "ccc", "dddd"];
  beforeAll(async () => {
    await makeTinyModel(joinPath(folder, "model.gguf"), { seed: 5, embeddingScale: 0.25 });
    const rows = prompts.map((content) => ({
      data_source: "test",
      prompt: [{ role: "user", content }],
      reward_model: { ground_truth: content },
    }));
    writeFileSync(joinPath(folder, "rows.jsonl"), rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
    writeFileSync(
      joinPath(folder, "reward.mjs"),
      "export const computeScore = (source, text) => [...text].filter((c) => c < '\\x80').length / Math.max(1, text.length);\n",
    );
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  async function trainIt(name: string, bus?: Awaited<ReturnType<typeof openNatsBus>>) {
    const events: RunEvent[] = [];
    const { adapter } = await train({
      config: {
        actor_rollout_ref: {
          model: { path: "model.gguf", lora_rank: 4 },
          actor: { optim: { lr: 1e-2 }, ppo_mini_batch_size: 1, ppo_max_token_len: 128 },
          rollout: { n: 4, prompt_length: 48, response_length: 8, max_num_seqs: 8, seed: 1 },
        },
        data: { train_files: "rows.jsonl", train_batch_size: 2, max_prompt_length: 48, max_response_length: 8 },
        custom_reward_function: { path: "reward.mjs" },
        trainer: { threads: 1, total_training_steps: STEPS, default_local_dir: folder, tracing: "off" },
        cluster: { audit: 0, take_part: false, wait_for_workers: bus ? 1 : 0 },
      },
      configFolder: folder,
      name,
      bus,
      report: (event) => events.push(event),
    });
    const steps = events.flatMap((event) => (event.type === "step" ? [event.metrics] : []));
    const texts = events.flatMap((event) => (event.type === "warning" || event.type === "notice" ? [event.text] : []));
    return { sha: createHash("sha256").update(readFileSync(adapter!)).digest("hex"), steps, texts };
  }

  it("has the adapter of a run without a bus, and its worker goes on", async () => {
    const alone = await trainIt("alone");
    const server = new NatsServer();
    await server.start();
    const times = { ackWaitMs: 4_000, presenceMs: 10_000, leaseMs: 600_000 };
    const bus = await openNatsBus({ servers: server.url, role: "coordinator", times, bounds });
    const machines = [0, 1].map(() => openNatsBus({ servers: server.url, role: "worker" }));
    const [first, second] = await Promise.all(machines);
    const workers: RunningWorker[] = [];
    const join = (machine: JobBus, id: string, onStatus?: (status: WorkerStatus) => void) =>
      startWorker(machine, { id, folder, threads: 1, onStatus }).then((worker) => void workers.push(worker));
    let jobs = 0;
    let lost: Promise<void> | undefined;
    /** Loses the store in the middle of a job and of a step; another worker joins, and this one leaves first. */
    const loseStore = async () => {
      await server.kill();
      server.removeStore();
      await server.start();
      await waitFor(async () => expect(await second!.readPolicy()).toBeDefined());
      await new Promise<void>((resolve, reject) => {
        join(second!, "second", ({ kinds }) => kinds.includes("rollout") && resolve()).catch(reject);
      });
      void workers[0]!.drain();
    };
    const losing: JobBus = {
      ...first!,
      work: (options) =>
        first!.work({
          ...options,
          jobs: options.jobs.map((handler) => ({
            ...handler,
            run: async (...given) => {
              if (handler.kind.name === "rollout" && ++jobs === 12) lost = loseStore();
              await lost;
              return handler.run(...given);
            },
          })),
        }),
    };
    try {
      await join(losing, "first");
      const shared = await trainIt("shared", bus);
      expect(shared.sha).toBe(alone.sha);
      for (const metrics of shared.steps) {
        expect(metrics["cluster/jobs_elsewhere"]).toBeGreaterThan(0);
        expect(metrics["cluster/jobs_here"]).toBe(0);
        expect(metrics["cluster/abandoned"]).toBe(0);
      }
      expect(workers[1]!.status.done).toBeGreaterThan(8);
      expect(shared.texts.filter((text) => text.includes("stream not found"))).toHaveLength(1);
      expect(shared.texts.join("\n")).not.toContain("coordinates this bus");
    } finally {
      await Promise.all(workers.map((worker) => worker.close()));
      await Promise.all([bus, first!, second!].map((each) => each.close()));
      await server.dispose();
    }
  });
});
