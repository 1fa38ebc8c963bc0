import { join } from "node:path";
import type { PolicyEngine, TrajectoryImage } from "@cria/core";
import { DumpImages, type DumpLine } from "@cria/records";
import { showVectors } from "@cria/rollout/internal";
import type { TrainConfig } from "../config/train-config.js";
import { nameLine } from "./check-line.js";

/** A dumped conversation with its images in memory. */
export interface ShownLine {
  line: DumpLine;
  images: readonly TrajectoryImage[];
}

/** Path of a file in a run's dump folder. */
export function nameDump(path: string, { trainer }: Pick<TrainConfig, "trainer">, validation: boolean): string {
  const own = validation ? trainer.validation_data_dir : trainer.rollout_data_dir;
  return join(own ?? join(path, validation ? "validation" : "rollouts"), "dump.jsonl");
}

/** @param dump path of the dump. @throws DataError if an image's file is missing, or has another hash. */
export function showLines(lines: readonly DumpLine[], dump: string): Promise<ShownLine[]> {
  const files = new DumpImages(dump);
  return Promise.all(
    lines.map(async (line) => {
      const images = (line.images ?? []).map(async ({ mime_type: mimeType, start, length, ...record }) => ({
        image: await files.load({ ...record, mimeType }),
        start,
        length,
      }));
      return { line: await files.fill(line), images: await Promise.all(images) };
    }),
  );
}

/**
 * Replaces image placeholders in a line by an engine's ids. @throws DataError if the images have other tokens there.
 */
export function placeImages({ line, images }: ShownLine, engine: Pick<PolicyEngine, "images" | "info">): DumpLine {
  if (images.length === 0) return line;
  return { ...line, token_ids: [...showVectors(line.token_ids, images, engine, nameLine(line))] };
}
