import { randomInt } from "node:crypto";
import { ClusterError } from "@cria/core";
import {
  AckPolicy,
  type ConsumerConfig,
  DiscardPolicy,
  JetStreamApiCodes,
  JetStreamApiError,
  type JetStreamManager,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from "@nats-io/jetstream";
import { nanos } from "@nats-io/transport-node";
import { type BusTimes, jobKindNames, MAX_JOB_BYTES, MAX_MESSAGE_BYTES } from "../bus/job-bus.js";
import type { StreamNames } from "./names.js";

/**
 * The server's bounds, on disk. Beyond them the oldest blobs, records and results are dropped; new jobs are refused.
 */
export interface NatsBounds {
  /**
   * Bytes of blobs; if the server has too little room it tries half of it, and so on down to 1 GiB. Default: 20 GiB.
   */
  blobBytes: number;
  /** Bytes of one blob. Default: 1 GiB. */
  oneBlobBytes: number;
  /** Bytes of results and of other records of jobs. Default: 1 GiB. */
  recordBytes: number;
  /** Bytes of queued jobs, whose number is bounded as if each had the largest size. Default: 1 GiB, for 15,420 jobs. */
  jobBytes: number;
  /** Hours until jobs, records and blobs expire. Default: 24. */
  hours: number;
  /** Copies in a cluster of servers: 1, 3 or 5. Default: 1. */
  replicas: number;
}

export const defaultBounds: NatsBounds = {
  blobBytes: 20 * 2 ** 30,
  oneBlobBytes: 2 ** 30,
  recordBytes: 2 ** 30,
  jobBytes: 2 ** 30,
  hours: 24,
  replicas: 1,
};

/** Upper bound of a bucket's first revision; `NatsRecords` keeps revisions further apart. */
const FIRST_REVISIONS = 2 ** 39;
const SMALL = 16 * 2 ** 20;
const HEADERS = 4096;

/**
 * Creates missing streams, and sets these bounds on existing ones.
 * @param onMissing of an existing bus: called before anything is created; existing streams then stay unchanged.
 */
export async function createStreams(
  manager: JetStreamManager,
  names: StreamNames,
  times: BusTimes,
  bounds: NatsBounds,
  onMissing?: (cause: unknown) => void,
): Promise<void> {
  const ensureStream = (config: StreamDescription) => ensure(manager, config, onMissing);
  const ensureLargest = (config: StreamDescription & { max_bytes: number }) => makeLargest(ensureStream, config);
  const maxAge = nanos(bounds.hours * 3_600_000);
  const common = { storage: StorageType.File, num_replicas: bounds.replicas, retention: RetentionPolicy.Limits };
  // A bucket in the layout of NATS's key-value stores, except that a full one drops the oldest.
  const bucket = (name: string, maxBytes: number, age: number): StreamDescription => ({
    ...common,
    name: `KV_${name}`,
    subjects: [`$KV.${name}.>`],
    max_msgs_per_subject: 1,
    max_bytes: maxBytes,
    max_age: age,
    max_msg_size: 2 * MAX_MESSAGE_BYTES,
    discard: DiscardPolicy.Old,
    allow_rollup_hdrs: true,
    deny_delete: true,
  });
  await ensureStream({
    ...common,
    name: names.jobs,
    subjects: [`${names.jobSubject}.>`],
    retention: RetentionPolicy.Workqueue,
    // A job that is queued or in hand is not queued again.
    max_msgs_per_subject: 1,
    discard: DiscardPolicy.New,
    discard_new_per_subject: true,
    max_bytes: bounds.jobBytes,
    // At its limit of bytes the server would drop the oldest small messages; this limit is reached first, and refuses
    // new ones.
    max_msgs: Math.max(1, Math.floor(bounds.jobBytes / (MAX_JOB_BYTES + HEADERS))),
    max_age: maxAge,
    max_msg_size: MAX_JOB_BYTES + HEADERS,
  });
  await ensureStream(bucket(names.records, bounds.recordBytes, maxAge));
  await ensureStream(bucket(names.workers, SMALL, nanos(times.presenceMs)));
  await ensureStream(bucket(names.control, SMALL, 0));
  await ensureLargest({
    ...common,
    name: `OBJ_${names.blobs}`,
    subjects: [`$O.${names.blobs}.C.>`, `$O.${names.blobs}.M.>`],
    max_bytes: bounds.blobBytes,
    max_age: maxAge,
    discard: DiscardPolicy.Old,
    allow_rollup_hdrs: true,
  });
  for (const kind of jobKindNames) {
    const consumer = {
      durable_name: kind,
      filter_subject: `${names.jobSubject}.${kind}.*`,
      ack_policy: AckPolicy.Explicit,
      ack_wait: nanos(times.ackWaitMs),
      // The job's record counts its tries: a decline is a delivery, but no try.
      max_deliver: -1,
      max_ack_pending: 100_000,
      max_waiting: 20_000,
    };
    await ensureConsumer(manager, names.jobs, consumer, onMissing === undefined);
  }
}

type StreamDescription = Partial<StreamConfig> & { name: string };

const LEAST_BLOB_BYTES = 2 ** 30;

/** Creates the largest stream that the server has room for: a laptop's disk may be nearly full. */
async function makeLargest(
  ensureStream: (config: StreamDescription) => Promise<void>,
  config: StreamDescription & { max_bytes: number },
): Promise<void> {
  for (let bytes = config.max_bytes; ; bytes = Math.floor(bytes / 2)) {
    try {
      return await ensureStream({ ...config, max_bytes: bytes });
    } catch (error) {
      const isFull = error instanceof ClusterError && error.code === "cluster/storage";
      if (!isFull || bytes / 2 < LEAST_BLOB_BYTES) throw error;
    }
  }
}

async function ensure(
  manager: JetStreamManager,
  config: StreamDescription,
  onMissing: ((cause: unknown) => void) | undefined,
): Promise<void> {
  try {
    const there = await manager.streams.info(config.name).catch((error) => {
      if (!(error instanceof JetStreamApiError) || error.code !== JetStreamApiCodes.StreamNotFound) throw error;
      onMissing?.(error);
      return undefined;
    });
    if (there && onMissing) return;
    await (there ? manager.streams.update(config.name, config) : manager.streams.add(config));
    if (!there && config.name.startsWith("KV_")) await beginSomewhere(manager, config.name);
  } catch (error) {
    if (!(error instanceof JetStreamApiError) || !error.message.includes("insufficient storage")) throw error;
    throw new ClusterError("does not fit on the server", {
      code: "cluster/storage",
      subject: `the stream ${config.name}`,
      expected: `${config.max_bytes} bytes of the server's storage, in addition to the other streams`,
      received: error.message,
      remedy:
        "raise max_file_store of nats-server: a bus needs about 3 GiB; or delete the streams of buses that nobody uses (nats stream rm), or open the bus from code with openNatsBus({ bounds })",
      cause: error,
    });
  }
}

/**
 * Starts a new bucket's revisions at a random number: revisions of a lost bucket then never match, so that a client
 * that has not noticed the loss cannot replace a record that it has not seen.
 */
async function beginSomewhere(manager: JetStreamManager, name: string): Promise<void> {
  const { state } = await manager.streams.info(name);
  // Another coordinator may have created it at the same time.
  if (state.last_seq === 0) await manager.streams.purge(name, { seq: randomInt(2, FIRST_REVISIONS) });
}

async function ensureConsumer(
  manager: JetStreamManager,
  stream: string,
  config: Partial<ConsumerConfig> & { durable_name: string },
  isUpdated: boolean,
): Promise<void> {
  try {
    await manager.consumers.info(stream, config.durable_name);
  } catch {
    await manager.consumers.add(stream, config);
    return;
  }
  if (isUpdated) await manager.consumers.update(stream, config.durable_name, config);
}
