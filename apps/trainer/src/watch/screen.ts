import type { ReadStream, WriteStream } from "node:tty";

export type ScreenInput = NodeJS.ReadableStream & Partial<Pick<ReadStream, "setRawMode" | "isRaw">>;
export type ScreenOutput = NodeJS.WritableStream & Pick<WriteStream, "columns" | "rows">;

const ENTER = "\x1b[?1049h\x1b[?25l";
const LEAVE = "\x1b[?25h\x1b[?1049l";

/**
 * The whole terminal, on its alternate page. `close` restores it, and so does the end of the process, except by
 * SIGKILL.
 */
export class Screen {
  private isOpen = true;
  private readonly wasRaw: boolean;
  private drawn: string[] = [];

  constructor(
    private readonly input: ScreenInput,
    private readonly output: ScreenOutput,
    onKey: (key: string) => void,
    onResize: () => void,
  ) {
    this.wasRaw = input.isRaw === true;
    process.on("exit", this.close);
    this.onData = (data) => {
      for (const key of readKeys(String(data))) onKey(key);
    };
    this.onResize = () => {
      this.drawn = [];
      onResize();
    };
    input.setRawMode?.(true);
    input.on("data", this.onData);
    input.resume();
    output.on("resize", this.onResize);
    output.write(ENTER);
  }

  private readonly onData: (data: Buffer | string) => void;
  private readonly onResize: () => void;

  get size(): { width: number; height: number } {
    return { width: Math.max(20, this.output.columns || 80), height: Math.max(6, this.output.rows || 24) };
  }

  /** Writes only changed lines, for slow connections. */
  draw(lines: readonly string[]): void {
    if (!this.isOpen) return;
    const isNew = this.drawn.length === 0;
    const changed = lines.flatMap((line, i) =>
      line === this.drawn[i] ? [] : [`\x1b[${i + 1};1H\x1b[0m${line}\x1b[0m\x1b[K`],
    );
    this.drawn = [...lines];
    if (changed.length > 0) this.output.write((isNew ? "\x1b[2J" : "") + changed.join(""));
  }

  readonly close = (): void => {
    if (!this.isOpen) return;
    this.isOpen = false;
    process.removeListener("exit", this.close);
    this.input.removeListener("data", this.onData);
    this.output.removeListener("resize", this.onResize);
    this.input.setRawMode?.(this.wasRaw);
    this.input.pause();
    this.output.write(`\x1b[0m${LEAVE}`);
  };
}

/** Typed keys: single characters, and arrows as "up", "down", "left", "right". */
function readKeys(text: string): string[] {
  const names: Record<string, string> = {
    A: "up",
    B: "down",
    C: "right",
    D: "left",
    "5~": "page up",
    "6~": "page down",
  };
  // biome-ignore lint/suspicious/noControlCharactersInRegex: keys are told by escape sequences.
  const keys = text.match(/\x1b\[(?:[A-D]|[56]~)|\x1b\[[\d;]*[A-Za-z~]|[\s\S]/g) ?? [];
  return keys.map((key) => names[key.slice(2)] ?? key);
}
