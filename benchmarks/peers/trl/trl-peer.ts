import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** What the peer asks for while it works: what a tool answers, or what a conversation earns. */
export type Question =
  | { ask: "tool"; row: number; name: string; arguments: Record<string, unknown> }
  | { ask: "reward"; row: number; text: string };

/** A Python process with TRL (trl_peer.py) that answers JSON lines, and asks by them. */
export class TrlPeer {
  private readonly process: ChildProcessWithoutNullStreams;
  private readonly lines: AsyncIterator<string>;

  constructor(
    python: string,
    threads: number,
    private readonly answer: (question: Question) => Promise<string | number>,
  ) {
    const env = {
      ...process.env,
      OMP_NUM_THREADS: String(threads),
      HF_HUB_OFFLINE: "1",
      TOKENIZERS_PARALLELISM: "false",
    };
    this.process = spawn(python, ["-W", "ignore", join(import.meta.dirname, "trl_peer.py")], { env, stdio: "pipe" });
    this.process.stderr.pipe(process.stderr);
    this.lines = createInterface(this.process.stdout)[Symbol.asyncIterator]();
  }

  async ask<T>(request: { do: string } & Record<string, unknown>): Promise<T> {
    this.write(request);
    for (;;) {
      const { value, done } = await this.lines.next();
      if (done) throw new Error(`TRL's process ended during "${request.do}"`);
      const said = JSON.parse(value) as T & { error?: string } & (Question | { ask?: undefined });
      if (said.error) throw new Error(`TRL failed at "${request.do}":\n${said.error}`);
      if (said.ask === undefined) return said;
      this.write({ answer: await this.answer(said as Question) });
    }
  }

  close(): void {
    this.process.stdin.end();
  }

  private write(line: object): void {
    this.process.stdin.write(`${JSON.stringify(line)}\n`);
  }
}
