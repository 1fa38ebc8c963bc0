import { randomBytes } from "node:crypto";
import { mkdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ClusterError } from "@cria/core";
import { guardWrite } from "@cria/core/internal";
import type { SharedCheckpoint, StoredCheckpoint } from "@cria/trainer";
import { z } from "zod";
import { type CheckpointPointer, type JobBus, PROTOCOL } from "../bus/job-bus.js";
import { readMessage } from "../bus/job-record.js";
import { receiveFile } from "../files/receive-file.js";
import { sendFile } from "../files/send-file.js";
import { sha256 } from "../jobs/packed.js";
import { LongWork, type WorkOptions } from "../models/long-work.js";
import type { Leader } from "./lead.js";

/**
 * Random bytes before each part of a checkpoint make its blobs unique: they are as old as the checkpoint, even for an
 * unchanged file, and are dropped with it, even if another checkpoint has equal bytes.
 */
const SALT_BYTES = 16;

const manifestSchema = z.object({
  protocol: z.literal(PROTOCOL),
  step: z.int().min(0),
  files: z.array(
    z.strictObject({
      /** Relative to the run folder. */
      name: z.string().regex(/^\w[\w.-]*(\/\w[\w.-]*)*$/),
      bytes: z.int().nonnegative(),
      parts: z.array(sha256),
    }),
  ),
});
type Manifest = z.infer<typeof manifestSchema>;

type CheckpointBus = Pick<JobBus, "blobs" | "takeCheckpoint" | "nameCheckpoint">;

/**
 * Puts a checkpoint into blobs, makes it the run's newest, and drops the previous one.
 * @throws ClusterError, among them "cluster/checkpoint-size" when the bus did not keep all of it, "cluster/lease-lost"
 * and "cluster/stale-checkpoint"; errors of reading files. The newest checkpoint then stays.
 */
export async function storeCheckpoint(
  bus: CheckpointBus,
  leader: Leader,
  { run, step, folder, files }: SharedCheckpoint,
  { report }: WorkOptions = {},
): Promise<void> {
  leader.check();
  const sizes = await Promise.all(files.map(async (name) => (await stat(join(folder, name))).size));
  const total = sizes.reduce((sum, size) => sum + size, 0);
  const work = new LongWork(`storing the checkpoint of step ${step} on the bus`, total, report);
  const prefix = randomBytes(SALT_BYTES);
  const manifest: Manifest = { protocol: PROTOCOL, step, files: [] };
  const stored: string[] = [];
  const onPart = (sha: string, bytes: number) => {
    stored.push(sha);
    work.add(bytes);
  };
  try {
    for (const name of files)
      manifest.files.push({ name, ...(await sendFile(bus, join(folder, name), { prefix, onPart })) });
    const sha = await bus.blobs.put(Buffer.from(JSON.stringify(manifest)));
    stored.push(sha);
    await checkThere(bus, stored, step, total);
    const before = await bus.nameCheckpoint({ run, term: leader.term, step, manifest: sha });
    if (before && before.manifest !== sha) await forgetCheckpoint(bus, before);
  } catch (error) {
    // After any other error the bus may have named it: its blobs then expire.
    if (error instanceof ClusterError) await dropBlobs(bus, stored);
    throw error;
  }
}

/**
 * The run's newest checkpoint on the bus. From now on no earlier coordinator replaces it.
 * @throws ClusterError
 */
export async function findStoredCheckpoint(
  bus: CheckpointBus,
  leader: Leader,
  run: string,
): Promise<StoredCheckpoint | null> {
  const pointer = await bus.takeCheckpoint(run, leader.term);
  if (!pointer) return null;
  return { step: pointer.step, fetch: (folder, options) => fetchFiles(bus, pointer, folder, options) };
}

async function fetchFiles(
  bus: CheckpointBus,
  pointer: CheckpointPointer,
  folder: string,
  { report, signal }: WorkOptions = {},
): Promise<string[]> {
  const { files } = await readManifest(bus, pointer);
  const total = files.reduce((sum, { bytes }) => sum + bytes, 0);
  const work = new LongWork(`fetching the checkpoint of step ${pointer.step} from the bus`, total, report);
  for (const file of files) {
    const path = join(folder, file.name);
    await guardWrite(path, () => mkdir(dirname(path), { recursive: true }));
    const onPart = ({ byteLength }: Uint8Array) => work.add(byteLength);
    const found = await receiveFile(bus, file, path, { prefixBytes: SALT_BYTES, onPart, signal });
    if (found === file.bytes) continue;
    throw new ClusterError("differs from its manifest", {
      code: "cluster/invalid-message",
      subject: `${file.name} of the checkpoint of step ${pointer.step}`,
      expected: `${file.bytes} bytes`,
      received: `${found} bytes`,
    });
  }
  return files.map(({ name }) => name);
}

async function readManifest({ blobs }: CheckpointBus, { manifest, step }: CheckpointPointer): Promise<Manifest> {
  const text = Buffer.from(await blobs.get(manifest)).toString();
  return readMessage(`the files of the checkpoint of step ${step}`, manifestSchema, text);
}

/** Checks that the blobs are still there: a full bus silently drops its oldest ones. */
async function checkThere({ blobs }: CheckpointBus, stored: readonly string[], step: number, total: number) {
  for (const sha of stored) {
    if (await blobs.has(sha)) continue;
    throw new ClusterError("does not fit among the bus's blobs", {
      code: "cluster/checkpoint-size",
      subject: `the checkpoint of step ${step}`,
      expected: `room for ${total} bytes`,
      received: "a bus that dropped a part of it at once",
      remedy:
        "give nats-server more room (max_file_store): the bus uses all of it for blobs, up to 20 GiB, or from code up to openNatsBus({ bounds: { blobBytes } })",
    });
  }
}

/** Drops a checkpoint's blobs. Never rejects: blobs that stay expire. */
async function forgetCheckpoint(bus: CheckpointBus, pointer: CheckpointPointer): Promise<void> {
  const files = await readManifest(bus, pointer).then(
    (manifest) => manifest.files,
    () => [],
  );
  await dropBlobs(bus, [...files.flatMap(({ parts }) => parts), pointer.manifest]);
}

async function dropBlobs({ blobs }: CheckpointBus, shas: readonly string[]): Promise<void> {
  for (const sha of shas) await blobs.delete(sha).catch(() => undefined);
}
