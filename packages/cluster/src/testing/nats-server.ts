import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { describe, it } from "vitest";
import type { NatsBounds } from "../nats/create-streams.js";

/** So small that many buses fit on one server. */
export const smallBounds: NatsBounds = {
  blobBytes: 60_000_000,
  oneBlobBytes: 50_000_000,
  recordBytes: 10_000_000,
  jobBytes: 100_000_000,
  hours: 1,
  replicas: 1,
};

function isInstalled(): boolean {
  try {
    execFileSync("nats-server", ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** Tests with Debian's nats-server: skipped, and said so, where it is missing; in CI they fail. */
export function describeWithNats(title: string, body: () => void): void {
  if (process.env.CI || isInstalled()) describe(title, body);
  else it.skip(`${title}: nats-server is not installed, see scripts/install-test-tools.sh`, () => {});
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}

/** A nats-server of its own, on a free port, with a folder of its own. */
export class NatsServer {
  readonly folder = mkdtempSync(join(tmpdir(), "cria-nats-"));
  port = 0;
  #child?: ChildProcess;

  /** @param config further lines of its configuration. */
  async start(config = ""): Promise<void> {
    this.port ||= await findFreePort();
    const file = join(this.folder, "server.conf");
    const store = `jetstream { store_dir: ${JSON.stringify(join(this.folder, "store"))} }`;
    writeFileSync(file, config.includes("jetstream {") ? config : `${store}\n${config}`);
    const child = spawn("nats-server", ["-c", file, "-a", "127.0.0.1", "-p", String(this.port)], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.#child = child;
    let log = "";
    child.stderr!.on("data", (text) => {
      log += text;
    });
    for (;;) {
      if (child.exitCode !== null) throw new Error(`nats-server ended:\n${log}`);
      if (await this.#answers()) return;
      await delay(20);
    }
  }

  get url(): string {
    return `nats://127.0.0.1:${this.port}`;
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  }

  async dispose(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #answers(): Promise<boolean> {
    const socket: Socket = connect(this.port, "127.0.0.1");
    try {
      await once(socket, "data");
      return true;
    } catch {
      return false;
    } finally {
      socket.destroy();
    }
  }
}
