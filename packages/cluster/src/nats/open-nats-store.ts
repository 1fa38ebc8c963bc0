import { setTimeout as delay } from "node:timers/promises";
import { ClusterError } from "@cria/core";
import { JetStreamApiCodes, JetStreamApiError, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { Objm } from "@nats-io/obj";
import { z } from "zod";
import type { BusStore } from "../bus/bus-store.js";
import { type BusTimes, defaultTimes, PROTOCOL } from "../bus/job-bus.js";
import { cleanText, readMessage } from "../bus/job-record.js";
import { connectNats, type NatsServers, nameServers } from "./connect-nats.js";
import { createStreams, defaultBounds, type NatsBounds } from "./create-streams.js";
import { missingBusError } from "./missing-bus.js";
import { nameStreams, type Role } from "./names.js";
import { NatsBlobs } from "./nats-blobs.js";
import { NatsQueue } from "./nats-queue.js";
import { NatsRecords } from "./nats-records.js";

export interface NatsStoreOptions extends NatsServers {
  /** A coordinator creates the streams; the others wait until they are there. */
  role: Role;
  /** Names of streams and subjects begin with it; several trainings on one server have different ones. Default: "cria". */
  prefix?: string;
  /** Milliseconds that a worker waits for a coordinator to create the streams. Default: 60,000. */
  waitMs?: number;
  /** Given by coordinators; those of the first hold as long as the bus is kept on the server. */
  times?: Partial<BusTimes>;
  /** Given by coordinators. */
  bounds?: Partial<NatsBounds>;
}

const KEY = "bus";
/** A request that a dying server swallowed is asked again after this. */
const REQUEST_MS = 5_000;
const milliseconds = z.number().positive();
const agreement = z.object({
  protocol: z.literal(PROTOCOL),
  times: z.object({ ackWaitMs: milliseconds, presenceMs: milliseconds, leaseMs: milliseconds }),
  oneBlobBytes: z.number().positive(),
});

/** @throws what `connectNats` throws; ClusterError "cluster/no-bus" after `waitMs`, "cluster/no-jetstream", "cluster/refused", or "cluster/protocol" for another version. */
export async function openNatsStore(options: NatsStoreOptions): Promise<BusStore> {
  const { role, prefix = "cria", waitMs = 60_000 } = options;
  if (!/^[A-Za-z0-9-]{1,64}$/.test(prefix)) throw prefixError(prefix);
  const names = nameStreams(prefix);
  const connection = await connectNats(options, role, `cria ${role}`);
  const end = new AbortController();
  const listeners = new Set<() => void>();
  try {
    const client = jetstream(connection, { timeout: REQUEST_MS });
    const manager = await jetstreamManager(connection, { checkAPI: false, timeout: REQUEST_MS });
    const keyValues = new Kvm(client);
    const open = async (name: string) => new NatsRecords(await keyValues.open(name), end.signal);
    const control = await open(names.control);

    if (role === "coordinator") {
      const there = await control
        .get(KEY)
        .catch(ignoreMissingStream)
        .catch((cause) => {
          throw missingBusError(prefix, cause);
        });
      const agreed = there && readMessage(`the bus ${prefix}`, agreement, there.text);
      const times = agreed?.times ?? { ...defaultTimes, ...options.times };
      const bounds = { ...defaultBounds, ...options.bounds };
      await createStreams(manager, names, times, bounds);
      const text = JSON.stringify({ protocol: PROTOCOL, times, oneBlobBytes: bounds.oneBlobBytes });
      if (!agreed) await control.set(KEY, text, 0);
    }
    const { times, oneBlobBytes } = await readAgreement(control, prefix, role === "coordinator" ? 0 : waitMs);
    const queue = new NatsQueue(client, manager, names, times.ackWaitMs);
    const store = await new Objm(client).open(names.blobs, false);
    const blobs = new NatsBlobs({
      connection,
      client,
      manager,
      store,
      bucket: names.blobs,
      most: oneBlobBytes,
      closed: end.signal,
    });

    void (async () => {
      for await (const status of connection.status()) {
        if (status.type !== "reconnect") continue;
        queue.renew();
        blobs.renew();
        for (const listener of listeners) listener();
      }
    })().catch(() => {});
    void connection.closed().then((error) => end.abort(error && shutOutError(options.servers, error)));

    return {
      times,
      queue,
      jobs: await open(names.records),
      workers: await open(names.workers),
      control,
      blobs,
      onReconnect: (listener) => void listeners.add(listener),
      closed: end.signal,
      async close() {
        // What was written and not yet sent goes out first, unless the server is away.
        await Promise.race([connection.flush().catch(() => {}), delay(1_000)]);
        end.abort();
        await connection.close();
      },
    };
  } catch (error) {
    await connection.close();
    throw error;
  }
}

/** What the first coordinator wrote down. */
async function readAgreement(control: NatsRecords, prefix: string, waitMs: number): Promise<z.infer<typeof agreement>> {
  const end = performance.now() + waitMs;
  for (;;) {
    let cause: unknown;
    const entry = await control.get(KEY).catch((error) => {
      cause = error;
      return undefined;
    });
    if (entry) return readMessage(`the bus ${prefix}`, agreement, entry.text);
    if (performance.now() >= end) throw missingBusError(prefix, cause);
    await delay(Math.min(500, waitMs));
  }
}

const shutOutError = (servers: NatsServers["servers"], cause: Error) =>
  new ClusterError("shut this connection out", {
    code: "cluster/shut-out",
    subject: nameServers(servers),
    received: cleanText(cause.message),
    remedy: "ask whoever runs the server: the key was revoked, or its JWT ended",
    cause,
  });

function ignoreMissingStream(error: unknown): undefined {
  if (!(error instanceof JetStreamApiError) || error.code !== JetStreamApiCodes.StreamNotFound) throw error;
}

const prefixError = (prefix: string) =>
  new ClusterError("cannot be used", {
    code: "cluster/invalid-prefix",
    subject: "the bus's prefix",
    expected: "1 to 64 letters, digits and -",
    received: JSON.stringify(prefix),
  });
