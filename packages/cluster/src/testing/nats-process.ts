import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { NatsBounds } from "../nats/create-streams.js";

/** Small enough for many buses on one server. */
export const smallBounds: NatsBounds = {
  blobBytes: 60_000_000,
  oneBlobBytes: 50_000_000,
  recordBytes: 10_000_000,
  jobBytes: 100_000_000,
  hours: 1,
  replicas: 1,
};

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}

/** Place of a server: the first words of its command, and its address there. */
export interface Place {
  on: readonly string[];
  address: string;
}

/** A separate nats-server on a free port, with its own folder. */
export class NatsServer {
  readonly folder = mkdtempSync(join(tmpdir(), "cria-nats-"));
  port = 0;
  readonly #place: Place;
  #child?: ChildProcess;

  constructor(place: Place = { on: [], address: "127.0.0.1" }) {
    this.#place = place;
  }

  /** @param config its configuration, with JetStream added if missing. Paths in it are relative to `folder`. */
  async start(config = ""): Promise<void> {
    this.port ||= await findFreePort();
    this.#configure(config);
    const { on, address } = this.#place;
    const listen = ["-a", address, "-p", String(this.port)];
    const [command, ...words] = [...on, "nats-server", "-c", "server.conf", ...listen];
    const child = spawn(command!, words, { cwd: this.folder, stdio: ["ignore", "ignore", "pipe"] });
    this.#child = child;
    let log = "";
    await new Promise<void>((resolve, reject) => {
      child.stderr!.on("data", (text) => {
        log += text;
        if (log.includes("Server is ready")) resolve();
      });
      child.on("error", reject);
      child.on("exit", () => reject(new Error(`nats-server ended:\n${log}`)));
    });
  }

  #configure(config: string): void {
    const text = config.includes("jetstream {") ? config : `jetstream { store_dir: store }\n${config}`;
    writeFileSync(join(this.folder, "server.conf"), text);
  }

  /** Reloads another configuration while it runs, as `nats-server --signal reload` does. */
  reload(config: string): void {
    this.#configure(config);
    this.#child!.kill("SIGHUP");
  }

  get url(): string {
    return `nats://${this.#place.address}:${this.port}`;
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  }

  /** Removes its stored data, like somebody who empties its disk. */
  removeStore(): void {
    rmSync(join(this.folder, "store"), { recursive: true, force: true });
  }

  async dispose(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
