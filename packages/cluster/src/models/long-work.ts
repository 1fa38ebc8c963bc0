import type { Report } from "@cria/trainer";

/** Time before progress is reported: short work needs no report. */
const PATIENCE_MS = 2_000;
const REPEAT_MS = 10_000;

export interface WorkOptions {
  report?: Report;
  signal?: AbortSignal;
}

/** Reports the progress of work over many bytes, once it takes long. */
export class LongWork {
  private told = performance.now() - REPEAT_MS + PATIENCE_MS;
  private done = 0;

  /**
   * @param what description, as "hashes model.gguf".
   * @param total bytes.
   */
  constructor(
    private readonly what: string,
    private readonly total: number,
    private readonly report: Report | undefined,
  ) {}

  add(bytes: number): void {
    this.done += bytes;
    if (performance.now() - this.told < REPEAT_MS) return;
    this.told = performance.now();
    const percent = Math.floor((100 * this.done) / Math.max(1, this.total));
    this.report?.({ type: "notice", text: `${this.what}: ${percent} % of ${(this.total / 1e9).toFixed(1)} GB` });
  }
}
