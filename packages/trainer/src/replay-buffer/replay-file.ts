import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeDamaged } from "../checkpoints/engine-state.js";
import { fromJson, toJson } from "./kept-trajectory.js";
import type { KeptGroup } from "./replay-buffer.js";

/** File of a checkpoint with the buffer. */
export const REPLAY_FILE = "replay.json";

/** Writes one group per line. */
export async function writeReplayFile(path: string, groups: readonly KeptGroup[]): Promise<void> {
  const lines = groups.map(({ step, trajectories }) =>
    JSON.stringify({ step, trajectories: trajectories.map(toJson) }),
  );
  await writeFile(path, lines.map((line) => `${line}\n`).join(""));
}

/**
 * Reads the groups of a checkpoint; none if it was made without a buffer. @throws DataError when its file is
 * damaged.
 */
export async function readReplayFile(checkpoint: string): Promise<KeptGroup[]> {
  const path = join(checkpoint, REPLAY_FILE);
  if (!existsSync(path)) return [];
  const lines = (await readFile(path, "utf8")).split("\n").filter((line) => line !== "");
  try {
    return lines.map((line) => {
      const { step, trajectories } = JSON.parse(line) as { step: number; trajectories: unknown[] };
      return { step, trajectories: trajectories.map(fromJson) };
    });
  } catch (error) {
    throw makeDamaged(path, "groups, a line of JSON each", (error as Error).message);
  }
}
