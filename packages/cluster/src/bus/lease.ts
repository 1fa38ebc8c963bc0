import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { ClusterError } from "@cria/core";
import { z } from "zod";
import type { BusStore } from "./bus-store.js";
import { type Lease, PROTOCOL } from "./job-bus.js";
import { cleanText, readMessage } from "./job-record.js";

const KEY = "lease";
const schema = z.object({
  protocol: z.literal(PROTOCOL),
  holder: z.string().max(200),
  /** Distinguishes holders with the same name. */
  token: z.string(),
  term: z.int().min(1),
  released: z.boolean(),
});
type LeaseRecord = z.infer<typeof schema>;

const readLease = (text: string): LeaseRecord => readMessage("the lease", schema, text);

/**
 * Waits for the lease. A lease is dead when its record did not change for `leaseMs` of this machine's time, so machines
 * need not agree about the time.
 * @param onWait called whenever the reason of the wait changes.
 */
export async function acquireLease(
  store: BusStore,
  holder: string,
  signal: AbortSignal,
  onWait: (reason: string) => void = () => {},
): Promise<HeldLease> {
  const { control, times } = store;
  let seen = { revision: -1, at: 0 };
  let told = "";
  const tell = (reason: string) => {
    if (reason !== told) onWait(reason);
    told = reason;
  };
  const tellAnswer = (asked: string, error: unknown) =>
    tell(
      `the bus was asked ${asked}, and answered: ${cleanText(error instanceof Error ? error.message : String(error))}`,
    );
  for (;;) {
    signal.throwIfAborted();
    const asked = performance.now();
    const entry = await control.get(KEY).catch((error) => {
      if (store.closed.aborted) throw error;
      tellAnswer("for its coordinator", error);
      return null;
    });
    if (entry !== null) {
      const found = entry && readLease(entry.text);
      const silent = entry?.revision === seen.revision && asked - seen.at >= times.leaseMs;
      if (!found || found.released || silent) {
        const record = {
          protocol: PROTOCOL,
          holder,
          token: randomUUID(),
          term: (found?.term ?? 0) + 1,
          released: false,
        };
        const revision = await control.set(KEY, JSON.stringify(record), entry?.revision ?? 0).catch((error) => {
          tellAnswer("for the lease", error);
          return undefined;
        });
        if (revision !== undefined) return new HeldLease(store, record as LeaseRecord, revision, asked);
      } else {
        tell(`${cleanText(found.holder)} coordinates this bus`);
        if (entry!.revision !== seen.revision) seen = { revision: entry!.revision, at: performance.now() };
      }
    }
    await delay(Math.min(1_000, times.leaseMs / 5), undefined, { signal });
  }
}

/** A held lease, renewed until it is released or lost. */
export class HeldLease implements Lease {
  readonly #store: BusStore;
  readonly #record: LeaseRecord;
  readonly #lost = new AbortController();
  readonly #timer: NodeJS.Timeout;
  #revision: number;
  /** Start of the last successful renewal. */
  #renewedAt: number;
  #renewing = false;

  constructor(store: BusStore, record: LeaseRecord, revision: number, acquiredAt: number) {
    this.#store = store;
    this.#record = record;
    this.#revision = revision;
    this.#renewedAt = acquiredAt;
    this.#timer = setInterval(() => this.#tick(), store.times.leaseMs / 6);
    this.#timer.unref();
    const onClosed = () => this.#lose("the bus is closed");
    store.closed.addEventListener("abort", onClosed, { once: true });
    this.#lost.signal.addEventListener("abort", () => store.closed.removeEventListener("abort", onClosed), {
      once: true,
    });
  }

  get holder(): string {
    return this.#record.holder;
  }

  get term(): number {
    return this.#record.term;
  }

  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  #tick(): void {
    const { leaseMs } = this.#store.times;
    const silentMs = performance.now() - this.#renewedAt;
    // Before any standby may take it.
    if (silentMs > leaseMs * 0.8) this.#lose("it could not be renewed in time");
    else if (silentMs > leaseMs / 3 && !this.#renewing) {
      this.#renewing = true;
      this.#renew().then(
        () => {
          this.#renewing = false;
        },
        () => {
          this.#renewing = false;
        },
      );
    }
  }

  async #renew(): Promise<void> {
    const { control } = this.#store;
    const began = performance.now();
    let revision = await control.set(KEY, JSON.stringify(this.#record), this.#revision);
    if (revision === undefined) {
      const entry = await control.get(KEY);
      // A lost store has no lease, and no other holder has taken it yet.
      if (!entry) revision = await control.set(KEY, JSON.stringify(this.#record), 0);
      // The record may be ours although its answer was lost.
      else if (readLease(entry.text).token === this.#record.token) revision = entry.revision;
    }
    if (this.#lost.signal.aborted) return;
    if (revision === undefined) return this.#lose("another coordinator took it");
    this.#revision = revision;
    this.#renewedAt = began;
  }

  #lose(received: string): void {
    clearInterval(this.#timer);
    this.#lost.abort(
      new ClusterError("is lost", {
        code: "cluster/lease-lost",
        subject: `the lease of ${this.holder}`,
        received,
        remedy: "stop writing: a standby goes on",
      }),
    );
  }

  async release(): Promise<void> {
    if (this.#lost.signal.aborted) return;
    this.#lose("it was released");
    const text = JSON.stringify({ ...this.#record, released: true });
    await this.#store.control.set(KEY, text, this.#revision).catch(() => {});
  }
}
