import { colors as pc } from "./colors.js";
import { wrapText } from "./wrap-text.js";

export interface ProgressOptions {
  label: string;
  total: number;
  /** Draws nothing, for --json. */
  silent?: boolean;
  /** Units done before this process began, which do not count for its speed. Default 0. */
  start?: number;
  /** Format of done and total; default: numbers. */
  format?: (count: number) => string;
}

/** A progress bar with ETA on stderr: redrawn on a terminal, a plain line every few seconds elsewhere. */
export class Progress {
  private readonly started = performance.now();
  private readonly isTty = process.stderr.isTTY === true;
  private lastDrawn = Number.NEGATIVE_INFINITY;
  private done = 0;
  private total: number;

  constructor(private readonly options: ProgressOptions) {
    this.total = options.total;
  }

  /** Draws `done` of the total, with `note` after the bar. `total` replaces the expected one. */
  update(done: number, note = "", total = this.total): void {
    this.done = done;
    this.total = total;
    const now = performance.now();
    const wait = this.isTty ? 100 : 5000;
    if (this.options.silent || (now - this.lastDrawn < wait && done < total)) return;
    this.lastDrawn = now;
    this.draw(note);
  }

  finish(note = ""): void {
    if (this.options.silent) return;
    if (this.done < this.total || note) this.draw(note);
    if (this.isTty) process.stderr.write("\n");
  }

  /** Removes the bar before other text is written; the next update draws it again. */
  clear(): void {
    if (!this.options.silent && this.isTty) process.stderr.write("\r\x1b[2K");
    this.lastDrawn = Number.NEGATIVE_INFINITY;
  }

  private draw(note: string): void {
    const { label, format = String } = this.options;
    const total = this.total;
    const share = total > 0 ? Math.min(1, this.done / total) : 1;
    const elapsed = (performance.now() - this.started) / 1000;
    const here = this.done - (this.options.start ?? 0);
    const left = here > 0 ? (elapsed / here) * (total - this.done) : Number.NaN;
    // A line longer than the terminal would be redrawn below itself.
    const columns = this.isTty ? (process.stderr.columns ?? 80) - 1 : Number.POSITIVE_INFINITY;
    const width = columns < 100 ? 12 : 24;
    const filled = Math.round(share * width);
    const bar = pc.cyan("█".repeat(filled)) + pc.dim("░".repeat(width - filled));
    const time = share >= 1 ? formatSeconds(elapsed) : `ETA ${formatSeconds(left)}`;
    const line = `${pc.bold(label)} ${bar} ${format(this.done)}/${format(total)} ${pc.dim(time)} ${note}`;
    process.stderr.write(this.isTty ? `\r\x1b[2K${wrapText(line, columns)[0]}` : `${line}\n`);
  }
}

export function formatSeconds(seconds: number): string {
  if (!Number.isFinite(seconds)) return "?";
  const whole = Math.round(seconds);
  return whole < 60 ? `${whole}s` : `${Math.floor(whole / 60)}m${String(whole % 60).padStart(2, "0")}s`;
}

/** 12345 as "12.3k". */
export function formatCount(value: number): string {
  return value >= 1e6
    ? `${(value / 1e6).toFixed(1)}M`
    : value >= 1e3
      ? `${(value / 1e3).toFixed(1)}k`
      : value.toFixed(0);
}
