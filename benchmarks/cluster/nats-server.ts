import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readCpuSeconds } from "./process-cpu.js";

/** A nats-server with JetStream on a free port, with its own folder of files. */
export class MeasuredServer {
  private constructor(
    private readonly child: ChildProcess,
    private readonly folder: string,
    readonly url: string,
  ) {}

  /** @throws Error when nats-server is not installed, or ends. */
  static async start(): Promise<MeasuredServer> {
    const folder = await mkdtemp(join(tmpdir(), "cria-cluster-"));
    const args = ["-a", "127.0.0.1", "-p", "-1", "-js", "-sd", folder];
    const child = spawn("nats-server", args, { stdio: ["ignore", "ignore", "pipe"] });
    try {
      return new MeasuredServer(child, folder, `nats://127.0.0.1:${await readPort(child)}`);
    } catch (cause) {
      child.kill("SIGKILL");
      await rm(folder, { recursive: true, force: true });
      throw new Error("nats-server does not start: install it (Debian: apt-get install nats-server)", { cause });
    }
  }

  /** Seconds of CPU that it has used. Linux. */
  cpuSeconds(): number {
    return readCpuSeconds(this.child.pid!);
  }

  async close(): Promise<void> {
    if (this.child.exitCode === null) {
      this.child.kill("SIGKILL");
      await once(this.child, "exit");
    }
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** It says on which free port it listens, and a little later that it is ready. */
function readPort(child: ChildProcess): Promise<number> {
  let log = "";
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (code) => reject(new Error(`it ended with ${code}: ${log}`)));
    child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      log += text;
      const port = /Listening for client connections on 127\.0\.0\.1:(\d+)/.exec(log)?.[1];
      if (port && log.includes("Server is ready")) resolve(Number(port));
    });
  });
}
