import { once } from "node:events";
import { type AddressInfo, connect as connectTcp, createServer } from "node:net";
import type { ClusterError } from "@cria/core";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { Objm } from "@nats-io/obj";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { type BusTimes, MAX_JOB_BYTES } from "../bus/job-bus.js";
import { describeBus, double, join, quickTimes, rollout } from "../testing/bus-contract.js";
import { smallBounds as bounds, describeWithNats, NatsServer } from "../testing/nats-server.js";
import { defaultBounds } from "./create-streams.js";
import { openNatsBus } from "./open-nats-bus.js";
import { openNatsStore } from "./open-nats-store.js";

describeWithNats("a bus over NATS", () => {
  let server: NatsServer;
  let worlds = 0;
  beforeAll(async () => {
    server = new NatsServer();
    await server.start();
  });
  afterAll(() => server.dispose());

  const options = (prefix: string, times: BusTimes = quickTimes) => ({ servers: server.url, prefix, times, bounds });

  describeBus((times) => {
    const prefix = `world-${++worlds}`;
    let connections = 0;
    return {
      connect: () => openNatsStore({ ...options(prefix, times), role: connections++ === 0 ? "coordinator" : "worker" }),
      async damage(sha) {
        const connection = await connect({ servers: server.url });
        const objects = await new Objm(jetstream(connection)).open(`${prefix}-blobs`);
        await objects.putBlob({ name: sha }, new Uint8Array(1000).fill(8));
        await connection.close();
      },
    };
  });

  it("drops the oldest blobs beyond its bound on disk, and says that they are missing", async () => {
    const bus = await openNatsBus({
      ...options("bounded"),
      role: "coordinator",
      bounds: { ...bounds, blobBytes: 3_000_000 },
    });
    const first = await bus.blobs.put(new Uint8Array(1_500_000).fill(1));
    const second = await bus.blobs.put(new Uint8Array(2_000_000).fill(2));
    await expect(bus.blobs.get(first)).rejects.toMatchObject({ code: "cluster/blob-missing" });
    expect((await bus.blobs.get(second)).length).toBe(2_000_000);
    await expect(bus.blobs.put(new Uint8Array(50_000_001))).rejects.toMatchObject({ code: "cluster/blob-size" });
    const connection = await connect({ servers: server.url });
    const { state } = await (await jetstreamManager(connection)).streams.info("OBJ_bounded-blobs");
    expect(state.bytes).toBeLessThanOrEqual(3_000_000);
    await connection.close();
    await bus.close();
  });

  it("treats an unanswered request as an absent server, so that workers ask again", async () => {
    await (await openNatsBus({ ...options("busy"), role: "coordinator" })).close();
    let swallowed = 0;
    const line = createServer((client) => {
      const upstream = connectTcp(server.port, "127.0.0.1");
      client.on("data", (bytes) => {
        // The first one also subscribes to all answers.
        if (bytes.includes("$JS.API") && !bytes.includes("SUB ") && swallowed++ === 0) return;
        upstream.write(bytes);
      });
      upstream.pipe(client);
      client.on("close", () => upstream.destroy());
      for (const socket of [client, upstream]) socket.on("error", () => undefined);
    }).listen(0, "127.0.0.1");
    await once(line, "listening");
    const { port } = line.address() as AddressInfo;
    const join = () => openNatsBus({ prefix: "busy", servers: `nats://127.0.0.1:${port}`, role: "worker", waitMs: 0 });
    await expect(join()).rejects.toMatchObject({ code: "cluster/unreachable" });
    await (await join()).close();
    line.close();
  });

  it("says that no coordinator was there, and that no server was", async () => {
    const lonely = openNatsBus({ ...options("lonely"), role: "worker", waitMs: 100 });
    await expect(lonely).rejects.toMatchObject({ code: "cluster/no-bus" });
    const nowhere = openNatsBus({ servers: "nats://127.0.0.1:1", role: "worker" });
    await expect(nowhere).rejects.toMatchObject({ code: "cluster/unreachable" });
  });

  it("says that an account has no JetStream", async () => {
    const plain = new NatsServer();
    await plain.start("accounts { A: { users: [{ user: a }] } }\nno_auth_user: a");
    for (const role of ["coordinator", "observer"] as const) {
      const bus = openNatsBus({ servers: plain.url, role, waitMs: 0 });
      await expect(bus).rejects.toMatchObject({ code: "cluster/no-jetstream", subject: "the bus cria" });
    }
    await plain.dispose();
  });

  it("keeps as many blobs as the server has room for, and says which other bound does not fit", async () => {
    const small = new NatsServer();
    await small.start("jetstream { store_dir: store, max_file_store: 1500000000 }");
    const open = (changed: object) =>
      openNatsBus({ servers: small.url, role: "coordinator", times: quickTimes, bounds: { ...bounds, ...changed } });
    await expect(open({ recordBytes: 2 ** 40 })).rejects.toMatchObject({
      code: "cluster/storage",
      subject: "the stream KV_cria-records",
    });
    const bus = await open({ blobBytes: 2 ** 60 });
    const connection = await connect({ servers: small.url });
    const { config } = await (await jetstreamManager(connection)).streams.info("OBJ_cria-blobs");
    expect(config.max_bytes).toBe(2 ** 30);
    await connection.close();
    await bus.close();
    await small.dispose();
  });

  it.each([
    [3_000, 5_000],
    [12_000, 6_000],
    [90_000, 30_000],
  ])("with an ackWaitMs of %i ends a request for a job after %i ms", async (ackWaitMs, expires) => {
    const prefix = `pulls-${ackWaitMs}`;
    const bus = await openNatsBus({ ...options(prefix, { ...quickTimes, ackWaitMs }), role: "coordinator" });
    const connection = await connect({ servers: server.url });
    const asked: number[] = [];
    connection.subscribe(`$JS.API.CONSUMER.MSG.NEXT.${prefix}-jobs.*`, {
      callback: (_, message) => void asked.push(message.json<{ expires: number }>().expires),
    });
    await connection.flush();
    const worker = await join(bus, "a", double);
    await vi.waitFor(() => expect(asked).not.toEqual([]));
    expect(asked[0]).toBe(1e6 * expires);
    await worker.close();
    await Promise.all([bus.close(), connection.close()]);
  });

  it("keeps the times of its first coordinator", async () => {
    const first = await openNatsStore({ ...options("agreed"), role: "coordinator" });
    const times = { ...quickTimes, ackWaitMs: 9_000 };
    const second = await openNatsStore({ ...options("agreed", times), role: "coordinator" });
    expect(second.times).toEqual(quickTimes);
    await Promise.all([first.close(), second.close()]);
  });

  it("warns once that its queue is full, and does the waiting jobs later", async () => {
    const problems: ClusterError[] = [];
    const bus = await openNatsBus({
      // Longer than the test: nothing is checked in between.
      ...options("full", { ...quickTimes, ackWaitMs: 300_000 }),
      role: "coordinator",
      bounds: { ...bounds, jobBytes: 3 * (MAX_JOB_BYTES + 4096) },
      onProblem: (problem) => problems.push(problem),
    });
    const connection = await connect({ servers: server.url });
    const { streams } = await jetstreamManager(connection);
    const rows = Array.from({ length: 20 }, (_, row) => row);
    const results = Promise.all(rows.map((row) => bus.submit(rollout, { row })));
    await vi.waitFor(() => expect(problems).toMatchObject([{ code: "cluster/queue-full" }]), { timeout: 20_000 });
    expect((await streams.info("full-jobs")).state.messages).toBe(3);
    const abort = new AbortController();
    const given = bus.submit(rollout, { row: 99 }, { signal: abort.signal });
    abort.abort(new Error("not any more"));
    await expect(given).rejects.toThrow("not any more");
    const worker = await openNatsBus({ ...options("full"), role: "worker" });
    await join(worker, "a", double, 8);
    expect((await results).map(({ value }) => value.answer)).toEqual(rows.map((row) => 2 * row));
    expect(problems).toHaveLength(1);
    await Promise.all([bus, worker].map((each) => each.close()));
    await connection.close();
  });

  it("holds by default as many jobs as a thousand workers of 15 slots have in hand", async () => {
    const bus = await openNatsBus({
      ...options("many"),
      role: "coordinator",
      bounds: { ...bounds, jobBytes: defaultBounds.jobBytes },
    });
    const connection = await connect({ servers: server.url });
    const { config } = await (await jetstreamManager(connection)).streams.info("many-jobs");
    expect(config.max_msgs).toBe(15_420);
    // The bound of messages must be reached first: at that of bytes the server would drop the oldest.
    expect(config.max_msgs * config.max_msg_size!).toBeLessThanOrEqual(config.max_bytes);
    await Promise.all([bus.close(), connection.close()]);
  });

  it("refuses a bus of another version, and names both", async () => {
    const store = await openNatsStore({ ...options("newer"), role: "coordinator" });
    await store.control.set("bus", JSON.stringify({ protocol: 2 }));
    for (const role of ["worker", "coordinator"] as const) {
      const older = openNatsBus({ ...options("newer"), role });
      await expect(older).rejects.toMatchObject({
        code: "cluster/protocol",
        expected: "protocol 1",
        received: "protocol 2",
      });
    }
    await store.close();
  });
});
