import { createHash } from "node:crypto";
import { open, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import type { ModelInfo, ProjectorInfo } from "@cria/core";
import { hashFile } from "@cria/core/internal";
import type { Checkpoint } from "@cria/trainer";
import { nameForRole, type Role } from "@cria/trainer/internal";

/** Bytes at a file's beginning that tell models apart: names, shapes and the vocabulary. */
const HEAD_BYTES = 1 << 20;

/** Everything besides a request and its seed that a model's answers depend on. */
export interface FingerprintParts {
  /** Version of Cria. */
  version: string;
  info: Pick<ModelInfo, "path" | "device" | "cpuKernel" | "ggmlBuild">;
  /** Projector with which the model sees images; absent: it reads only text. */
  projector?: ProjectorInfo;
  /** The result of `describeWeights`; null: only the model's own weights. */
  weights: string | null;
  deterministic: boolean;
}

/** For example `cria-0.1.0/cria-tiny@1f2e3d4c/step-40@5a6b7c8d/cpu-avx2-haswell/deterministic`. */
export async function makeFingerprint(parts: FingerprintParts): Promise<string> {
  const { version, info, projector, weights, deterministic } = parts;
  const { path, device, cpuKernel, ggmlBuild } = info;
  const kernel = device === "cpu" ? `${device}-${cpuKernel}-${ggmlBuild}` : device;
  return [
    `cria-${version}`,
    `${nameFile(path)}@${await hashHead(path)}`,
    ...(projector ? [`${nameFile(projector.path)}@${projector.hash.slice(0, 8)}`] : []),
    weights ?? "base",
    kernel,
    deterministic ? "deterministic" : "batch-dependent",
  ].join("/");
}

/** A checkpoint, or an adapter's file, in a few words. */
export async function describeWeights(
  source: { checkpoint: Checkpoint; role: Role } | { adapter: string },
): Promise<string> {
  if ("adapter" in source) return `${nameFile(source.adapter)}@${(await hashFile(source.adapter)).slice(0, 8)}`;
  const { path, step } = source.checkpoint;
  const state = join(path, nameForRole("actor", source.role), "state.bin");
  return `step-${step}@${(await hashFile(state)).slice(0, 8)}`;
}

const nameFile = (path: string) => basename(path).replace(/\.gguf$/, "");

async function hashHead(path: string): Promise<string> {
  const { size } = await stat(path);
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(Math.min(size, HEAD_BYTES)), 0, undefined, 0);
    return createHash("sha256").update(`${size}|`).update(buffer.subarray(0, bytesRead)).digest("hex").slice(0, 8);
  } finally {
    await file.close();
  }
}
