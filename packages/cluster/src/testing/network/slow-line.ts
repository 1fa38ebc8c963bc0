import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/**
 * A connection to a server with delays, stalls and breaks, for machines whose kernel cannot make them. It handles bytes
 * in order, above TCP: it loses only whole connections.
 */
export class SlowLine {
  /** Milliseconds each way, for data that arrives from now on. */
  delayMs = 0;
  readonly #server = createServer((socket) => this.#join(socket));
  readonly #target: { host: string; port: number };
  readonly #sockets = new Set<Socket>();
  readonly #standing: (() => void)[] = [];
  #still = false;

  constructor(target: { host: string; port: number }) {
    this.#target = target;
  }

  /** @returns the address of the near end. */
  async open(host = "127.0.0.1"): Promise<string> {
    this.#server.listen(0, host);
    await once(this.#server, "listening");
    return `nats://${host}:${(this.#server.address() as AddressInfo).port}`;
  }

  #join(near: Socket): void {
    const far = connect(this.#target);
    const pair = [near, far] as const;
    for (const [from, to] of [pair, [far, near]] as const) {
      this.#sockets.add(from);
      from.setNoDelay(true);
      from.on("data", (bytes) => this.#carry(() => to.write(bytes)));
      from.on("close", () => {
        this.#sockets.delete(from);
        this.#carry(() => to.destroy());
      });
      from.on("error", () => {});
    }
  }

  #carry(go: () => void): void {
    setTimeout(() => (this.#still ? this.#standing.push(go) : go()), this.delayMs);
  }

  /** Holds all data without an error. */
  stop(): void {
    this.#still = true;
  }

  /** Passes the held data on, in order. */
  go(): void {
    this.#still = false;
    for (const go of this.#standing.splice(0)) go();
  }

  /** Breaks each connection; data in transit is lost. */
  break(): void {
    this.#standing.length = 0;
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.break();
    await closed;
  }
}
