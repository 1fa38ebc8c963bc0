import { setTimeout as delay } from "node:timers/promises";
import { ClusterError } from "@cria/core";
import type { StoreLoss } from "../bus/job-bus.js";
import { cleanText } from "../bus/job-record.js";

/** How often it is asked whether the bus is there again. */
const ASK_MS = 500;

export interface LostStoreOptions {
  /** How the bus is called before people. */
  bus: string;
  /** Which store it was when this side came. */
  id: string;
  /** Which store it is; undefined: none that is whole. */
  read(): Promise<string | undefined>;
  /** Of coordinators: creates what is missing. @param onMissing called before the first part is created. */
  create?(onMissing: (cause: unknown) => void): Promise<void>;
  /** Begins anew what goes on by itself: the store is another one. */
  renew(): void;
  onLoss(loss: StoreLoss): void;
  /** The bus is there as it was, or anew. */
  onThere(): void;
  closed: AbortSignal;
}

/**
 * Looks after a server that may lose what it stores: its disk was emptied, or somebody removed the streams. A coordinator creates
 * them anew; the others wait until one has. Which store it is says an id that its creator writes down.
 */
export class LostStore {
  #id: string;
  #looking?: Promise<void>;
  /** While it is lost. */
  #lost?: { restored(): void; failed(error: ClusterError): void };

  constructor(private readonly options: LostStoreOptions) {
    this.#id = options.id;
  }

  /** Looks whether the store is still the same, and waits for another one where it is not. Never rejects. */
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
        // A server that is away is looked at again when it is back.
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
    const problem = new ClusterError("lost what it had stored", {
      code: "cluster/store-lost",
      subject: `the bus ${bus}`,
      expected: "the streams that its coordinator created",
      received: cleanText(cause instanceof Error ? cause.message : String(cause)),
      remedy: create
        ? "look after the disk of nats-server; the bus is set up anew, and the training goes on"
        : "look after the disk of nats-server; jobs come again once a coordinator has set the bus up anew",
      cause,
    });
    onLoss({ problem, restored });
  }

  #take(id: string): void {
    // Another coordinator may have created it before anything was missed here.
    this.#lose(new Error("another store than before"));
    this.#id = id;
    this.options.renew();
    this.#lost!.restored();
    this.#lost = undefined;
    this.options.onThere();
  }

  /** What cannot be set up: there is no room, or another version did. */
  #fail(error: ClusterError): void {
    this.#lost?.failed(error);
    this.#lost = undefined;
  }
}

/** What JetStream answers where a stream or its consumer is gone. */
export const isMissing = (error: unknown): boolean =>
  error instanceof Error && /\b(stream|consumer) not found\b/i.test(error.message);
