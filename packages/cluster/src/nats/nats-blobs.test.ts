import { randomBytes } from "node:crypto";
import { type JetStreamClient, type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { type ObjectStore, Objm } from "@nats-io/obj";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, beforeEach, expect, it, vi } from "vitest";
import type { JobBus } from "../bus/job-bus.js";
import { hashBytes } from "../bus/job-record.js";
import { smallBounds as bounds, describeWithNats, NatsServer } from "../testing/nats-server.js";
import { SlowLine } from "../testing/network/slow-line.js";
import { NatsBlobs } from "./nats-blobs.js";
import { openNatsBus } from "./open-nats-bus.js";

const STREAM = "OBJ_cria-blobs";

describeWithNats("blobs over NATS", () => {
  const server = new NatsServer();
  let bus: JobBus;
  let connection: NatsConnection;
  let client: JetStreamClient;
  let manager: JetStreamManager;
  let store: ObjectStore;
  let closed: AbortController;
  let blobs: NatsBlobs;
  beforeAll(async () => {
    await server.start();
    bus = await openNatsBus({ servers: server.url, role: "coordinator", bounds });
    connection = await connect({ servers: server.url });
    client = jetstream(connection);
    manager = await jetstreamManager(connection);
    store = await new Objm(client).open("cria-blobs");
  });
  beforeEach(() => {
    closed = new AbortController();
    blobs = make(client);
  });
  afterAll(async () => {
    await connection.close();
    await bus.close();
    await server.dispose();
  });

  const make = (over: JetStreamClient): NatsBlobs =>
    new NatsBlobs({
      connection,
      client: over,
      manager,
      store,
      bucket: "cria-blobs",
      most: bounds.oneBlobBytes,
      closed: closed.signal,
    });
  /** A client with another way to publish chunks. */
  const withPublish = (publish: JetStreamClient["publish"]): JetStreamClient => ({
    ...client,
    consumers: client.consumers,
    publish: (subject, ...rest) =>
      subject.includes(".C.") ? publish(subject, ...rest) : client.publish(subject, ...rest),
  });
  const state = async () => (await manager.streams.info(STREAM, { subjects_filter: ">" })).state;

  it.each([0, 1, 128 * 1024, 3_000_001])(
    "of %i bytes are read by the client of NATS, and the other way round",
    async (size) => {
      const bytes = randomBytes(size);
      const sha = await blobs.put(bytes);
      expect(Buffer.compare((await store.getBlob(sha))!, bytes)).toBe(0);
      const ours = (await store.info(sha))!;
      await blobs.delete(sha);
      expect(await store.getBlob(sha)).toBeNull();

      await store.putBlob({ name: sha }, bytes);
      const theirs = (await store.info(sha))!;
      for (const key of ["name", "size", "chunks", "digest", "bucket", "deleted", "options"] as const)
        expect(ours[key], key).toEqual(theirs[key]);
      expect(Buffer.compare(await blobs.get(sha), bytes)).toBe(0);
      const { last_seq: before } = await state();
      expect(await blobs.put(bytes)).toBe(sha);
      expect((await state()).last_seq).toBe(before);
      await blobs.delete(sha);
    },
  );

  it("have at most 16 chunks on the way, of all that are put at once", async () => {
    let onTheWay = 0;
    let most = 0;
    const counting = make(
      withPublish(async (...words) => {
        most = Math.max(most, ++onTheWay);
        return client.publish(...words).finally(() => onTheWay--);
      }),
    );
    const all = [1, 2, 3].map(() => randomBytes(4_000_000));
    const shas = await Promise.all(all.map((bytes) => counting.put(bytes)));
    expect(most).toBe(16);
    for (const [index, sha] of shas.entries()) {
      expect(Buffer.compare(await blobs.get(sha), all[index]!)).toBe(0);
      await blobs.delete(sha);
    }
  });

  it("are not there when a chunk was not stored, or not in order, and their other chunks are deleted", async () => {
    const bytes = randomBytes(3_000_000);
    let sent = 0;
    const failing = make(
      withPublish(async (...words) => {
        if (++sent === 9) throw new Error("no answer");
        return client.publish(...words);
      }),
    );
    await expect(failing.put(bytes)).rejects.toThrow("no answer");
    expect(sent).toBeLessThan(22);
    const turned = make(
      withPublish(async (...words) => {
        const answer = await client.publish(...words);
        return { ...answer, seq: -answer.seq };
      }),
    );
    await expect(turned.put(bytes)).rejects.toThrow(/order/);
    const sha = hashBytes(bytes);
    expect(await blobs.has(sha)).toBe(false);
    await expect(blobs.get(sha)).rejects.toMatchObject({ code: "cluster/blob-missing" });
    await vi.waitFor(async () => {
      const subjects = Object.keys((await state()).subjects ?? {});
      expect(subjects.filter((subject) => subject.includes(".C."))).toEqual([]);
    });
    expect(await blobs.put(bytes)).toBe(sha);
    await blobs.delete(sha);
  });

  it("with a dropped chunk are missing, and are stored again", async () => {
    const bytes = randomBytes(1_000_000);
    const sha = await blobs.put(bytes);
    const { nuid, chunks } = (await store.info(sha))!;
    const chunk = await manager.streams.getMessage(STREAM, { last_by_subj: `$O.cria-blobs.C.${nuid}` });
    await manager.streams.deleteMessage(STREAM, chunk!.seq);
    expect(await blobs.has(sha)).toBe(false);
    await expect(blobs.get(sha)).rejects.toMatchObject({ code: "cluster/blob-missing" });
    await blobs.put(bytes);
    expect(Buffer.compare(await blobs.get(sha), bytes)).toBe(0);
    // The remains of the first attempt are deleted.
    const { subjects } = await state();
    expect(Object.values(subjects ?? {})).toContain(chunks);
    expect(subjects).not.toHaveProperty([`$O.cria-blobs.C.${nuid}`]);
    await blobs.delete(sha);
  });

  it("are read on from where a line broke", async () => {
    const bytes = randomBytes(30_000_000);
    const sha = await blobs.put(bytes);
    const line = new SlowLine({ host: "127.0.0.1", port: server.port });
    const far = await connect({ servers: await line.open(), reconnectTimeWait: 20 });
    const over = jetstream(far);
    const open = vi.spyOn(over.consumers, "getPushConsumer");
    const reader = new NatsBlobs({
      connection: far,
      client: over,
      manager,
      store,
      bucket: "cria-blobs",
      most: bounds.oneBlobBytes,
      closed: closed.signal,
    });
    void (async () => {
      for await (const { type } of far.status()) if (type === "reconnect") reader.renew();
    })();
    const reading = reader.get(sha);
    await vi.waitFor(() => expect(far.stats().inBytes).toBeGreaterThan(3_000_000), { interval: 1 });
    line.break();
    expect(Buffer.compare(await reading, bytes)).toBe(0);
    const starts = open.mock.calls.map(([, options]) => (options as { opt_start_seq?: number }).opt_start_seq);
    expect(starts).toEqual([undefined, expect.any(Number)]);
    await blobs.delete(sha);
    await far.close();
    await line.close();
  });

  it("are given up when the bus is closed, while they are read and while they are put", async () => {
    const sha = await blobs.put(randomBytes(1_000_000));
    const line = new SlowLine({ host: "127.0.0.1", port: server.port });
    const far = await openNatsBus({ servers: await line.open(), role: "worker" });
    line.stop();
    const ends = [far.blobs.get(sha), far.blobs.put(randomBytes(1_000_000))].map((call) =>
      call.then(
        () => "done",
        () => "given up",
      ),
    );
    await far.close();
    expect(await Promise.all(ends)).toEqual(["given up", "given up"]);
    await line.close();

    // Also while its chunks arrive.
    const reason = new Error("closed");
    const { consumers } = client;
    const getPushConsumer: typeof consumers.getPushConsumer = async (...words) => {
      const consumer = await consumers.getPushConsumer(...words);
      setImmediate(() => closed.abort(reason));
      return consumer;
    };
    const closing = make({ ...client, consumers: { ...consumers, getPushConsumer } });
    await expect(closing.get(sha)).rejects.toBe(reason);
    await blobs.delete(sha);
  });
});
