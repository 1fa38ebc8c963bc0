import { createHash } from "node:crypto";
import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { ClusterError } from "@cria/core";
import { guardWrite, userCacheFolder } from "@cria/core/internal";
import type { JobBus } from "../bus/job-bus.js";
import { cleanText } from "../bus/job-record.js";
import { receiveFile } from "../files/receive-file.js";
import { hashModel } from "./hash-model.js";
import { LongWork, type WorkOptions } from "./long-work.js";

export interface ReceiveModelOptions extends WorkOptions {
  /** Default: a model. */
  kind?: "model" | "projector";
  bus: Pick<JobBus, "blobs">;
  /** Target folder; default: the user's cache. */
  folder?: string;
}

/**
 * Fetches a model from the bus. The file gets its name only when it is complete and has its SHA-256.
 * @returns the file, named by its SHA-256; an existing one is not fetched again.
 * @throws ClusterError, those of `blobs.get` included; DataError when it cannot be written; the signal's reason.
 */
export async function receiveModel(
  { name, sha256, bytes, blobs }: { name: string; sha256: string; bytes: number; blobs: readonly string[] },
  { kind = "model", bus, folder = userCacheFolder("models"), report, signal }: ReceiveModelOptions,
): Promise<string> {
  const path = join(folder, `${sha256}.gguf`);
  const there = await hashModel(path, { report, signal }).catch(() => undefined);
  signal?.throwIfAborted();
  if (there?.sha256 === sha256) return path;
  await guardWrite(folder, () => mkdir(folder, { recursive: true }));
  const temporary = `${path}.${process.pid}.${Math.random().toString(36).slice(2)}.part`;
  const work = new LongWork(`fetching ${cleanText(name)} from the bus`, bytes, report);
  try {
    const hash = createHash("sha256");
    const onPart = (part: Uint8Array) => {
      hash.update(part);
      work.add(part.byteLength);
    };
    const size = await receiveFile(bus, { bytes, parts: blobs }, temporary, { onPart, signal });
    const found = hash.digest("hex");
    if (size !== bytes || found !== sha256) {
      throw new ClusterError("differs from the run's description", {
        code: "cluster/other-model",
        subject: `the ${kind} ${cleanText(name)} on the bus`,
        expected: `${bytes} bytes with SHA-256 ${sha256}`,
        received: size === bytes ? `SHA-256 ${found}` : `${size > bytes ? "more" : `${size}`} bytes`,
      });
    }
    await rename(temporary, path);
    return path;
  } finally {
    await rm(temporary, { force: true });
  }
}
