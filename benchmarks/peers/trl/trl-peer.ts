import { spawn } from "node:child_process";
import { join } from "node:path";
import { LineProcess } from "../line-process.js";

/** Questions of the peer during its work: a tool's answer, or a conversation's reward. */
export type Question =
  | { ask: "tool"; row: number; name: string; arguments: Record<string, unknown> }
  | { ask: "reward"; row: number; text: string };

/** A Python process with TRL (trl_peer.py) that answers JSON lines, and asks by them. */
export class TrlPeer {
  private readonly process: LineProcess;

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
    const script = join(import.meta.dirname, "trl_peer.py");
    this.process = new LineProcess(
      spawn(python, ["-W", "ignore", script], { env, stdio: ["pipe", "pipe", "inherit"] }),
    );
  }

  async ask<T>(request: { do: string } & Record<string, unknown>): Promise<T> {
    this.write(request);
    for (;;) {
      const said = await this.process.read<T & { error?: string } & (Question | { ask?: undefined })>(
        `TRL's process ended during "${request.do}"`,
      );
      if (said.error) throw new Error(`TRL failed at "${request.do}":\n${said.error}`);
      if (said.ask === undefined) return said;
      this.write({ answer: await this.answer(said as Question) });
    }
  }

  close(): void {
    this.process.end();
  }

  private write(line: object): void {
    this.process.write(JSON.stringify(line));
  }
}
