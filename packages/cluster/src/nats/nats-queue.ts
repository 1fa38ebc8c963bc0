import { ClusterError } from "@cria/core";
import {
  type Consumer,
  type ConsumerMessages,
  JetStreamApiError,
  type JetStreamClient,
  type JetStreamManager,
} from "@nats-io/jetstream";
import type { Delivery, JobQueue } from "../bus/bus-store.js";
import type { JobKindName } from "../bus/job-bus.js";
import type { StreamNames } from "./names.js";

/**
 * Milliseconds that one request for a job stays open; below 5 s the client may end the process over a late heartbeat.
 */
const LEAST_PULL_MS = 5_000;
const MOST_PULL_MS = 30_000;
/** JetStream's codes for deleting a message that does not exist. */
const NO_SUCH_MESSAGE = [10043, 10057];

/** Jobs in a work queue of JetStream: a subject for each job, a durable consumer for each kind. */
export class NatsQueue implements JobQueue {
  readonly #client: JetStreamClient;
  readonly #manager: JetStreamManager;
  readonly #names: StreamNames;
  readonly #pullMs: number;
  readonly #consumers = new Map<JobKindName, Promise<Consumer>>();
  readonly #pulls = new Set<ConsumerMessages>();

  constructor(client: JetStreamClient, manager: JetStreamManager, names: StreamNames, ackWaitMs: number) {
    this.#client = client;
    this.#manager = manager;
    this.#names = names;
    // A frozen worker's requests expire before its jobs are given out again; otherwise they would get these.
    this.#pullMs = Math.max(LEAST_PULL_MS, Math.min(MOST_PULL_MS, ackWaitMs / 2));
  }

  #subject(kind: JobKindName, id: string): string {
    return `${this.#names.jobSubject}.${kind}.${id}`;
  }

  async put(kind: JobKindName, id: string, data: Uint8Array): Promise<void> {
    try {
      await this.#client.publish(this.#subject(kind, id), data);
    } catch (error) {
      const { message } = error as Error;
      if (message.includes("maximum messages per subject")) return;
      if (!/maximum (bytes|messages) exceeded/.test(message)) throw error;
      throw new ClusterError("is full", {
        code: "cluster/queue-full",
        subject: "the queue of jobs",
        received: message,
        remedy:
          "nothing if waiting is fine; else start workers with fewer slots (cria worker --slots), or open the bus from code with openNatsBus({ bounds: { jobBytes } })",
        cause: error,
      });
    }
  }

  /**
   * Deletes by sequence number: a server of 2.9 that purges one subject skips all waiting jobs, and delivers them to no
   * worker.
   */
  async remove(kind: JobKindName, id: string): Promise<void> {
    const { streams } = this.#manager;
    const queued = await streams.getMessage(this.#names.jobs, { last_by_subj: this.#subject(kind, id) });
    if (!queued) return;
    try {
      await streams.deleteMessage(this.#names.jobs, queued.seq, false);
    } catch (error) {
      // Its worker acknowledged it in between.
      if (!(error instanceof JetStreamApiError) || !NO_SUCH_MESSAGE.includes(error.code)) throw error;
    }
  }

  async pull(kind: JobKindName, signal: AbortSignal): Promise<Delivery | undefined> {
    if (signal.aborted) return undefined;
    const consumer = await this.#open(kind);
    const pull = await consumer.fetch({ max_messages: 1, expires: this.#pullMs });
    const stop = () => pull.stop();
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    this.#pulls.add(pull);
    try {
      for await (const message of pull) {
        return {
          data: message.data,
          ack: () => quietly(() => message.ack()),
          retry: (delayMs) => quietly(() => message.nak(delayMs)),
          working: () => quietly(() => message.working()),
        };
      }
      return undefined;
    } finally {
      this.#pulls.delete(pull);
      signal.removeEventListener("abort", stop);
    }
  }

  /** Ends the open requests, which a restarted server does not know. */
  renew(): void {
    for (const pull of this.#pulls) pull.stop();
  }

  #open(kind: JobKindName): Promise<Consumer> {
    const known = this.#consumers.get(kind);
    if (known) return known;
    const opened = this.#client.consumers.get(this.#names.jobs, kind);
    opened.catch(() => this.#consumers.delete(kind));
    this.#consumers.set(kind, opened);
    return opened;
  }
}

/** Ignores errors of a closed connection: the job will be delivered to another worker. */
function quietly(say: () => void): void {
  try {
    say();
  } catch {}
}
