import { appendFile, mkdir } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { formatGroundTruth, type Generation } from "./generation.js";
import {
  encodeFileVersion,
  encodeRecord,
  encodeScalars,
  encodeSessionStart,
  encodeText,
} from "./tensorboard-events.js";
import type { TrackedRun, TrackedStep, Tracker } from "./tracker.js";

/** Event files in `<run folder>/tensorboard`, one per process: `tensorboard --logdir runs` finds them. */
export class TensorboardTracker implements Tracker {
  readonly name = "tensorboard";
  private file = "";

  async start({ folder, resumedStep }: TrackedRun): Promise<null> {
    const parent = join(folder, "tensorboard");
    await mkdir(parent, { recursive: true });
    const now = Date.now();
    this.file = join(parent, `events.out.tfevents.${Math.floor(now / 1000)}.${hostname()}.${process.pid}.0`);
    const events = [encodeFileVersion(now)];
    if (resumedStep !== null) events.push(encodeSessionStart(now, resumedStep + 1));
    await this.append(events);
    return null;
  }

  log(steps: readonly TrackedStep[]): Promise<void> {
    return this.append(
      steps.flatMap((step) => [
        encodeScalars(step),
        ...(step.generations ? [encodeText(step, "val/generations", step.generations.map(formatGeneration))] : []),
      ]),
    );
  }

  async finish(): Promise<void> {}

  private append(events: readonly Buffer[]): Promise<void> {
    return appendFile(this.file, Buffer.concat(events.map(encodeRecord)));
  }
}

/** Markdown, which TensorBoard renders. */
function formatGeneration(generation: Generation): string {
  const quote = (text: string) => `\n\n${text.replace(/^/gm, "    ")}\n\n`;
  const parts = { input: generation.input, output: generation.output, gts: formatGroundTruth(generation) };
  const texts = Object.entries(parts).map(([name, text]) => `**${name}**${quote(text)}`);
  return `${texts.join("")}**score** ${generation.score}`;
}
