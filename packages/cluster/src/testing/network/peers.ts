import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { PeerEvent, PeerOptions } from "./peer.js";

const root = join(import.meta.dirname, "..", "..", "..", "..", "..");

/** A coordinator or a worker on a host, as a separate process. */
export class Peer {
  readonly events: (PeerEvent & { atMs: number })[] = [];
  readonly #child: ChildProcess;
  readonly #waiting = new Set<() => void>();
  #errors = "";

  /** @param on the words that run a program on the host. */
  constructor(on: readonly string[], options: PeerOptions) {
    const program = [process.execPath, "--conditions=cria-source", "--import", "tsx"];
    const [command, ...words] = [...on, ...program, join(import.meta.dirname, "peer.ts"), JSON.stringify(options)];
    this.#child = spawn(command!, words, { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
    createInterface({ input: this.#child.stdout! }).on("line", (line) => {
      this.events.push({ ...(JSON.parse(line) as PeerEvent), atMs: performance.now() });
      for (const look of this.#waiting) look();
    });
    this.#child.stderr!.on("data", (text) => {
      this.#errors += text;
    });
    this.#child.on("close", () => {
      for (const look of this.#waiting) look();
    });
  }

  of<Name extends PeerEvent["event"]>(name: Name) {
    return this.events.filter((each) => each.event === name) as (Extract<PeerEvent, { event: Name }> & {
      atMs: number;
    })[];
  }

  /**
   * Waits for `count` events of a name.
   * @returns the last one.
   * @throws Error when the process ends, or after `withinMs`.
   */
  async until<Name extends PeerEvent["event"]>(name: Name, count = 1, withinMs = 60_000) {
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      for (const look of this.#waiting) look();
    }, withinMs);
    try {
      while (this.of(name).length < count) {
        const problem = late
          ? `not within ${withinMs} ms`
          : this.#child.exitCode !== null
            ? "the process ended"
            : undefined;
        if (problem)
          throw new Error(
            `${count} times ${name}: ${problem}; ${JSON.stringify(this.events.slice(-5))} ${this.#errors}`,
          );
        await new Promise<void>((resolve) => {
          const look = () => {
            this.#waiting.delete(look);
            resolve();
          };
          this.#waiting.add(look);
        });
      }
      return this.of(name)[count - 1]!;
    } finally {
      clearTimeout(timer);
    }
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill("SIGKILL");
    await once(this.#child, "exit");
  }
}
