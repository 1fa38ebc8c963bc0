import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { ClusterError } from "@cria/core";
import { JetStreamApiCodes, JetStreamApiError, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { Objm } from "@nats-io/obj";
import { z } from "zod";
import type { BusStore, Records } from "../bus/bus-store.js";
import { type BusTimes, defaultTimes, PROTOCOL, type StoreLoss } from "../bus/job-bus.js";
import { cleanText, readMessage } from "../bus/job-record.js";
import { connectNats, type NatsServers, nameServers, openError } from "./connect-nats.js";
import { createStreams, defaultBounds, type NatsBounds } from "./create-streams.js";
import { isMissing, LostStore } from "./lost-store.js";
import { missingBusError } from "./missing-bus.js";
import { nameStreams, type Role } from "./names.js";
import { NatsBlobs } from "./nats-blobs.js";
import { NatsQueue } from "./nats-queue.js";
import { NatsRecords } from "./nats-records.js";

export interface NatsStoreOptions extends NatsServers {
  /** A coordinator creates the streams; the others wait for them. */
  role: Role;
  /** Prefix of streams and subjects; several trainings on one server need different ones. Default: "cria". */
  prefix?: string;
  /** Milliseconds that a worker waits for a coordinator to create the streams. Default: 60,000. */
  waitMs?: number;
  /** Only from coordinators; the first one's hold as long as the bus is kept on the server. */
  times?: Partial<BusTimes>;
  /** Only from coordinators. */
  bounds?: Partial<NatsBounds>;
}

const KEY = "bus";
/** Time after which an unanswered request is repeated: a dying server may have swallowed it. */
const REQUEST_MS = 5_000;
const milliseconds = z.number().positive();
const agreement = z.object({
  protocol: z.literal(PROTOCOL),
  /** Id of the store: a new one after a loss has another id. */
  id: z.string().max(100).default(""),
  times: z.object({ ackWaitMs: milliseconds, presenceMs: milliseconds, leaseMs: milliseconds }),
  oneBlobBytes: z.number().positive(),
});

/**
 * @throws the errors of `connectNats`; ClusterError "cluster/no-bus" after `waitMs`, "cluster/no-jetstream",
 * "cluster/refused", or "cluster/protocol" for another version.
 */
export async function openNatsStore(options: NatsStoreOptions): Promise<BusStore> {
  const { role, prefix = "cria", waitMs = 60_000 } = options;
  if (!/^[A-Za-z0-9-]{1,64}$/.test(prefix)) throw prefixError(prefix);
  const names = nameStreams(prefix);
  const connection = await connectNats(options, role, `cria ${role}`);
  const end = new AbortController();
  const listeners = new Set<() => void>();
  const lossListeners = new Set<(loss: StoreLoss) => void>();
  try {
    const client = jetstream(connection, { timeout: REQUEST_MS });
    const manager = await jetstreamManager(connection, { checkAPI: false, timeout: REQUEST_MS });
    const keyValues = new Kvm(client);
    const open = async (name: string) => new NatsRecords(await keyValues.open(name), end.signal);
    const control = await open(names.control);
    const bounds = { ...defaultBounds, ...options.bounds };
    const writeAgreement = (times: BusTimes, oneBlobBytes: number, seen: number) =>
      control.set(KEY, JSON.stringify({ protocol: PROTOCOL, id: randomUUID(), times, oneBlobBytes }), seen);

    if (role === "coordinator") {
      const there = await control
        .get(KEY)
        .catch(ignoreMissingStream)
        .catch((cause) => {
          throw missingBusError(prefix, cause);
        });
      const agreed = there && readMessage(`the bus ${prefix}`, agreement, there.text);
      const times = agreed?.times ?? { ...defaultTimes, ...options.times };
      await createStreams(manager, names, times, bounds);
      if (!agreed) await writeAgreement(times, bounds.oneBlobBytes, 0);
    }
    const { id, times, oneBlobBytes } = await readAgreement(control, prefix, role === "coordinator" ? 0 : waitMs);
    const [jobs, workers] = [await open(names.records), await open(names.workers)];
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

    const lost = new LostStore({
      bus: `${prefix} on ${nameServers(options.servers)}`,
      id,
      async read() {
        const entry = await control.get(KEY);
        if (!entry) return undefined;
        const found = readMessage(`the bus ${prefix}`, agreement, entry.text);
        // The creator of the new store decides.
        Object.assign(times, found.times);
        return found.id;
      },
      create:
        role === "coordinator"
          ? async (onMissing) => {
              let isMissed = false;
              await createStreams(manager, names, times, { ...bounds, oneBlobBytes }, (cause) => {
                isMissed = true;
                onMissing(cause);
              });
              const entry = await control.get(KEY);
              if (isMissed || !entry) await writeAgreement(times, oneBlobBytes, entry?.revision ?? 0);
            }
          : undefined,
      renew() {
        for (const records of [control, jobs, workers]) records.renew();
        queue.renew();
        blobs.renew();
      },
      onLoss: (loss) => {
        for (const listener of lossListeners) listener(loss);
      },
      onThere: () => {
        for (const listener of listeners) listener();
      },
      closed: end.signal,
    });
    /** Checks the store when a call fails because it is gone. */
    const heed =
      <Given extends unknown[], Answer>(ask: (...given: Given) => Promise<Answer>) =>
      async (...given: Given): Promise<Answer> => {
        try {
          return await ask(...given);
        } catch (error) {
          if (saysGone(error)) void lost.look();
          throw error;
        }
      };
    const heedRecords = (records: NatsRecords): Records => ({
      get: heed((key) => records.get(key)),
      set: heed((key, text, seen) => records.set(key, text, seen)),
      delete: heed((key) => records.delete(key)),
      watch: heed((from, onChange, signal) => records.watch(from, onChange, signal)),
    });

    void (async () => {
      for await (const status of connection.status()) {
        if (status.type !== "reconnect") continue;
        queue.renew();
        blobs.renew();
        void lost.look();
      }
    })().catch(() => {});
    void connection.closed().then((error) => end.abort(error && shutOutError(options.servers, error)));

    return {
      times,
      queue: {
        put: heed((kind, id, data) => queue.put(kind, id, data)),
        remove: heed((kind, id) => queue.remove(kind, id)),
        pull: heed((kind, signal) => queue.pull(kind, signal)),
      },
      jobs: heedRecords(jobs),
      workers: heedRecords(workers),
      control: heedRecords(control),
      blobs: {
        put: heed((bytes) => blobs.put(bytes)),
        get: heed((sha) => blobs.get(sha)),
        has: heed((sha) => blobs.has(sha)),
        delete: heed((sha) => blobs.delete(sha)),
      },
      onReconnect: (listener) => void listeners.add(listener),
      onLoss: (listener) => void lossListeners.add(listener),
      closed: end.signal,
      async close() {
        // Sends buffered messages first, unless the server is unreachable.
        await Promise.race([connection.flush().catch(() => {}), delay(1_000)]);
        end.abort();
        await connection.close();
      },
    };
  } catch (error) {
    await connection.close();
    throw openError(options.servers, error);
  }
}

/** The first coordinator's stored settings. */
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
    remedy: "ask the server's administrator: the key was revoked, or its JWT expired",
    cause,
  });

/** True if the error says that the stream is missing, or has no listener any more. */
const saysGone = (error: unknown): boolean =>
  isMissing(error) || (error instanceof Error && /jetstream is not enabled|no responders/i.test(error.message));

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
