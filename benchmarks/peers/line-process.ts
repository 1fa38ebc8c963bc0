import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";

/** A process that answers lines on its standard input by lines of JSON. */
export class LineProcess {
  private readonly lines: AsyncIterator<string>;

  constructor(private readonly child: ChildProcess) {
    this.lines = createInterface(child.stdout!)[Symbol.asyncIterator]();
  }

  write(line: string): void {
    this.child.stdin!.write(`${line}\n`);
  }

  /** The next line. @param ended the error where the process ends instead. */
  async read<T>(ended: string): Promise<T> {
    const { value, done } = await this.lines.next();
    if (done) throw new Error(ended);
    return JSON.parse(value) as T;
  }

  /** Nothing more is asked. */
  end(): void {
    this.child.stdin!.end();
  }

  /** Ends it, and waits until it has. */
  async dispose(): Promise<void> {
    const closed = new Promise((resolve) => this.child.once("close", resolve));
    this.end();
    await closed;
  }
}
