import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { DataError } from "@cria/core";
import { listTrained, type StatefulEngine, TENSOR_PARTS, type TrainedTensor } from "../policy/stateful-engine.js";

/**
 * The trained state of an engine in one file: every trained tensor with its two AdamW moments, and the optimizer's
 * step count.
 *
 *   "CRIASTAT" | u32 version | u32 header bytes | header (JSON) | F32 data | SHA-256 of all before
 *
 * The data are value, moment1 and moment2 of each tensor of the header, in its order. Numbers are little-endian, as
 * on every machine that llama.cpp runs on.
 */

const MAGIC = "CRIASTAT";
const VERSION = 1;
const PREFIX_BYTES = MAGIC.length + 8;
const DIGEST_BYTES = 32;

export interface EngineStateHeader {
  architecture: string;
  trainable: string;
  /** Number of optimizer steps taken. */
  stepCount: number;
  tensors: TrainedTensor[];
}

/**
 * Writes and syncs the file; the caller provides a temporary name. Errors are those of the file system.
 * @returns the checksum at the file's end, in hex.
 */
export async function writeEngineState(path: string, engine: StatefulEngine): Promise<string> {
  const header: EngineStateHeader = {
    architecture: engine.info.architecture,
    trainable: engine.info.trainable,
    stepCount: engine.stepCount,
    tensors: listTrained(engine),
  };
  const text = Buffer.from(JSON.stringify(header));
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.write(MAGIC, "latin1");
  prefix.writeUInt32LE(VERSION, MAGIC.length);
  prefix.writeUInt32LE(text.length, MAGIC.length + 4);
  const file = await open(path, "w");
  try {
    const hash = createHash("sha256");
    await append(file, hash, prefix);
    await append(file, hash, text);
    for (const { name } of header.tensors) {
      for (const part of TENSOR_PARTS) {
        const values = await engine.readTensor(name, part);
        await append(file, hash, Buffer.from(values.buffer, values.byteOffset, values.byteLength));
      }
    }
    const digest = hash.digest();
    await file.writeFile(digest);
    await file.sync();
    return digest.toString("hex");
  } finally {
    await file.close();
  }
}

async function append(file: FileHandle, hash: Hash, bytes: Buffer): Promise<void> {
  hash.update(bytes);
  // Unlike write, it goes on after a partial write.
  await file.writeFile(bytes);
}

/**
 * Verifies the whole file against the checksum at its end, which is returned in hex. @throws DataError when it is
 * damaged.
 */
export async function verifyEngineState(path: string): Promise<{ header: EngineStateHeader; checksum: string }> {
  const { header, size } = await readHeader(path);
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path, { end: size - DIGEST_BYTES - 1 })) hash.update(chunk);
  const file = await open(path);
  try {
    const stored = await readExactly(file, path, size - DIGEST_BYTES, DIGEST_BYTES);
    if (!hash.digest().equals(stored))
      throw makeDamaged(path, "bytes that match the checksum at its end", "another checksum");
    return { header, checksum: stored.toString("hex") };
  } finally {
    await file.close();
  }
}

/**
 * Restores a verified state into an engine.
 * @throws DataError, before anything is changed, when its tensors differ from the engine's.
 */
export async function restoreEngineState(path: string, engine: StatefulEngine): Promise<void> {
  const { header, dataOffset } = await readHeader(path);
  checkFits(path, header, engine);
  const file = await open(path);
  try {
    let offset = dataOffset;
    for (const { name, shape } of header.tensors) {
      const bytes = 4 * countElements(shape);
      for (const part of TENSOR_PARTS) {
        const data = await readExactly(file, path, offset, bytes);
        // A copy: a Buffer may be unaligned within a shared pool.
        const values = new Float32Array(bytes / 4);
        new Uint8Array(values.buffer).set(data);
        await engine.writeTensor(name, values, part);
        offset += bytes;
      }
    }
  } finally {
    await file.close();
  }
  engine.stepCount = header.stepCount;
}

async function readHeader(path: string): Promise<{ header: EngineStateHeader; dataOffset: number; size: number }> {
  const file = await open(path).catch((cause: Error) => {
    throw makeDamaged(path, "a readable training state", cause.message);
  });
  try {
    const stats = await file.stat();
    if (!stats.isFile()) throw makeDamaged(path, "a file", "a folder");
    const { size } = stats;
    const prefix = await readExactly(file, path, 0, PREFIX_BYTES);
    if (prefix.toString("latin1", 0, MAGIC.length) !== MAGIC)
      throw makeDamaged(path, `"${MAGIC}" at its start`, JSON.stringify(prefix.toString("latin1", 0, MAGIC.length)));
    const version = prefix.readUInt32LE(MAGIC.length);
    if (version !== VERSION) throw makeDamaged(path, `version ${VERSION}`, `version ${version}`);
    const length = prefix.readUInt32LE(MAGIC.length + 4);
    const dataOffset = PREFIX_BYTES + length;
    let header: EngineStateHeader;
    try {
      header = JSON.parse((await readExactly(file, path, PREFIX_BYTES, length)).toString()) as EngineStateHeader;
    } catch (cause) {
      throw makeDamaged(path, "a header in JSON", (cause as Error).message);
    }
    const elements = header.tensors.reduce((sum, { shape }) => sum + countElements(shape), 0);
    const expected = dataOffset + 4 * TENSOR_PARTS.length * elements + DIGEST_BYTES;
    if (size !== expected) throw makeDamaged(path, `${expected} bytes`, `${size} bytes`);
    return { header, dataOffset, size };
  } finally {
    await file.close();
  }
}

async function readExactly(file: FileHandle, path: string, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length);
  let done = 0;
  while (done < length) {
    const { bytesRead } = await file.read(buffer, done, length - done, position + done);
    if (bytesRead === 0) throw makeDamaged(path, `${position + length} bytes`, `${position + done} bytes`);
    done += bytesRead;
  }
  return buffer;
}

function checkFits(path: string, header: EngineStateHeader, engine: StatefulEngine): void {
  const describe = (tensors: EngineStateHeader["tensors"]) =>
    new Map(tensors.map(({ name, shape }) => [name, `${name} [${shape.join(", ")}]`]));
  const saved = describe(header.tensors);
  const live = describe(listTrained(engine));
  for (const name of new Set([...live.keys(), ...saved.keys()])) {
    if (saved.get(name) === live.get(name)) continue;
    throw new DataError("is the state of another model or adapter", {
      code: "data/checkpoint-mismatch",
      subject: path,
      expected: live.get(name) ?? `no tensor ${name}`,
      received: saved.get(name) ?? `no tensor ${name}`,
      remedy:
        "resume with the same actor_rollout_ref.model.* as the run that saved it, or set trainer.resume_mode=disable",
    });
  }
}

export function countElements(shape: readonly number[]): number {
  return shape.reduce((product, n) => product * n, 1);
}

/** The error for a damaged file of a checkpoint. */
export function makeDamaged(path: string, expected: string, received: string): DataError {
  return new DataError("is damaged", {
    code: "data/bad-checkpoint",
    subject: path,
    expected,
    received,
    remedy: "resume from another checkpoint: trainer.resume_mode=resume_path trainer.resume_from_path=<folder>",
  });
}
