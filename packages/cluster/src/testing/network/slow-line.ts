import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/**
 * A line to a server that delays what goes over it, stands still, or breaks: for machines whose kernel cannot do that. It works
 * on bytes in order, above TCP: it loses nothing but whole connections.
 */
export class SlowLine {
  /** Milliseconds each way, for what comes from now on. */
  delayMs = 0;
  readonly #server = createServer((socket) => this.#join(socket));
  readonly #target: { host: string; port: number };
  readonly #sockets = new Set<Socket>();
  readonly #standing: (() => void)[] = [];
  #still = false;

  constructor(target: { host: string; port: number }) {
    this.#target = target;
  }

  /** @returns where the line begins. */
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

  /** Nothing goes through, and nobody is told. */
  stop(): void {
    this.#still = true;
  }

  /** What stood goes through, in order. */
  go(): void {
    this.#still = false;
    for (const go of this.#standing.splice(0)) go();
  }

  /** Breaks each connection; what was on the way is lost. */
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
