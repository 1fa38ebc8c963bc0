import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { formatLiveState, LIVE_FILE } from "./live-state.js";
import type { LiveTracker } from "./live-tracker.js";

const INTERVAL_MS = 1000;

/**
 * Writes a tracker's state into a run folder once a second, for observers. Failures to write are ignored: no
 * training depends on the file.
 */
export class LiveWriter {
  private writing: Promise<void> | null = null;
  private isOver = false;
  private readonly timer: NodeJS.Timeout;

  constructor(
    private readonly folder: string,
    private readonly tracker: Pick<LiveTracker, "state">,
  ) {
    this.timer = setInterval(() => this.write(), INTERVAL_MS);
    this.timer.unref();
    this.write();
  }

  /** Stops writing, and removes the file. */
  async close(): Promise<void> {
    this.isOver = true;
    clearInterval(this.timer);
    await this.writing;
    await rm(join(this.folder, LIVE_FILE), { force: true }).catch(() => undefined);
  }

  private write(): void {
    // A slow disk gets fewer writes.
    if (this.writing || this.isOver) return;
    this.writing = this.replace()
      .catch(() => undefined)
      .finally(() => {
        this.writing = null;
      });
  }

  /** Replaces the file atomically. Not synced: after a power cut nobody needs it. */
  private async replace(): Promise<void> {
    const file = join(this.folder, LIVE_FILE);
    const temporary = `${file}.${process.pid}.tmp`;
    try {
      await writeFile(temporary, formatLiveState(this.tracker.state()));
      await rename(temporary, file);
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
  }
}
