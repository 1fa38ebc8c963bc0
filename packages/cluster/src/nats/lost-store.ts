import { setTimeout as delay } from "node:timers/promises";
import { ClusterError } from "@cria/core";
import type { StoreLoss } from "../bus/job-bus.js";
import { cleanText } from "../bus/job-record.js";

/** Time between two checks whether the bus exists again. */
const ASK_MS = 500;

export interface LostStoreOptions {
  /** Name of the bus in texts for people. */
  bus: string;
  /** Id of the store when this side joined. */
  id: string;
  /** Id of the store; undefined: there is no complete one. */
  read(): Promise<string | undefined>;
  /**
   * Coordinators only: creates missing streams.
   * @param onMissing called before the first stream is created.
   */
  create?(onMissing: (cause: unknown) => void): Promise<void>;
  /** Restarts watches and requests, because the store is another one. */
  renew(): void;
  onLoss(loss: StoreLoss): void;
  /** The bus is available, unchanged or new. */
  onThere(): void;
  closed: AbortSignal;
}

/**
 * Handles a server that may lose its data: its disk was emptied, or somebody removed the streams. A coordinator creates
 * them again; the others wait until one has. An id that the creator stores identifies the store.
 */
export class LostStore {
  #id: string;
  #looking?: Promise<void>;
  /** Set while the store is lost. */
  #lost?: { restored(): void; failed(error: ClusterError): void };

  constructor(private readonly options: LostStoreOptions) {
    this.#id = options.id;
  }

  /** Checks whether the store is still the same, and if not waits for a new one. Never rejects. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #look(): Promise<void> {
    const { read, create, onThere, closed } = this.options;
    while (!closed.aborted) {
      try {
        await create?.((cause) => this.#lose(cause));
        const found = await read();
        if (found === this.#id) return onThere();
        if (found !== undefined) return this.#take(found);
        this.#lose(new Error("stream not found"));
      } catch (error) {
        if (error instanceof ClusterError) return this.#fail(error);
        if (isMissing(error)) this.#lose(error);
        // After a disconnect the store is checked on reconnect.
        else if (!this.#lost) return;
      }
      await delay(ASK_MS);
    }
  }

  #lose(cause: unknown): void {
    if (this.#lost) return;
    const { bus, create, onLoss } = this.options;
    const restored = new Promise<void>((resolve, reject) => {
      this.#lost = { restored: resolve, failed: reject };
    });
    restored.catch(() => {});
    const problem = new ClusterError("lost its data", {
      code: "cluster/store-lost",
      subject: `the bus ${bus}`,
      expected: "the streams that its coordinator created",
      received: cleanText(cause instanceof Error ? cause.message : String(cause)),
      remedy: create
        ? "check the disk of nats-server; the bus is set up again, and the training continues"
        : "check the disk of nats-server; jobs come again after a coordinator has set up the bus again",
      cause,
    });
    onLoss({ problem, restored });
  }

  #take(id: string): void {
    // Another coordinator may have created it before this side noticed a loss.
    this.#lose(new Error("a store with another id"));
    this.#id = id;
    this.options.renew();
    this.#lost!.restored();
    this.#lost = undefined;
    this.options.onThere();
  }

  /** Reports that the bus cannot be set up: there is no room, or another version did it. */
  #fail(error: ClusterError): void {
    this.#lost?.failed(error);
    this.#lost = undefined;
  }
}

/** True if JetStream reports that a stream or its consumer is missing. */
export const isMissing = (error: unknown): boolean =>
  error instanceof Error && /\b(stream|consumer) not found\b/i.test(error.message);
