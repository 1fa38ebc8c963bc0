import { stat } from "node:fs/promises";
import { basename } from "node:path";
import type { JobBus } from "../bus/job-bus.js";
import { sendFile } from "../files/send-file.js";
import { listParts } from "./list-parts.js";
import { LongWork, type WorkOptions } from "./long-work.js";

/**
 * Puts a model into the bus, in parts of 64 MiB; parts that exist are not sent again.
 * @returns the parts' SHA-256 in order; null for a model of several files, which is not shared.
 * @throws ClusterError of `blobs.put`; errors of reading the file; the signal's reason.
 */
export async function shareModel(
  bus: Pick<JobBus, "blobs">,
  path: string,
  { report, signal }: WorkOptions = {},
): Promise<string[] | null> {
  if (listParts(path).length > 1) return null;
  const work = new LongWork(`sharing ${basename(path)} with workers`, (await stat(path)).size, report);
  const { parts } = await sendFile(bus, path, { onPart: (_, bytes) => work.add(bytes), signal });
  return parts;
}
