import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { ConfigError, type ErrorDetails } from "@cria/core";
import { hashFile } from "@cria/core/internal";
import type { CheckpointStore } from "../checkpoints/checkpoint-store.js";
import { describeMachine, type Machine } from "../checkpoints/machine.js";
import { describeModelFile } from "../checkpoints/model-file.js";
import type { RunOrigin } from "../checkpoints/run-folder.js";
import type { TrainConfig } from "../config/train-config.js";

/** Makes the error for a replay that is refused. */
export function refuseReplay(name: string, summary: string, details: Omit<ErrorDetails, "code">): ConfigError {
  return new ConfigError(summary, { code: `replay/${name}`, ...details });
}

/** @throws ConfigError if sampling depended on chance. */
export function checkDeterministic(path: string, config: TrainConfig): void {
  if (config.actor_rollout_ref.rollout.deterministic) return;
  throw refuseReplay("not-deterministic", "was not sampled deterministically", {
    subject: path,
    expected: "a run with actor_rollout_ref.rollout.deterministic=true",
    received: "false: what was sampled depended on what ran beside it",
    remedy: "cria show shows its conversations",
  });
}

/** @throws ConfigError if the run's model or projector is missing, or is another file now. */
export async function checkModel(config: TrainConfig, origin: RunOrigin | null): Promise<void> {
  await checkProjector(config, origin);
  const model = origin?.model ?? config.actor_rollout_ref.model.path;
  if (!existsSync(model)) {
    throw refuseReplay("no-model", "is not there", {
      subject: "the model of the run",
      expected: model,
      received: "no such file",
      remedy: "put the model back to where the run had it",
    });
  }
  if (!origin?.model_file) return;
  const now = await describeModelFile(model);
  const { bytes, hash } = origin.model_file;
  if (now.bytes === bytes && now.hash === hash) return;
  throw refuseReplay("other-model", "is another file than the run had", {
    subject: model,
    expected: `${bytes} bytes, ${hash.slice(0, 12)}`,
    received: `${now.bytes} bytes, ${now.hash.slice(0, 12)}`,
    remedy: "put the run's model back",
  });
}

async function checkProjector({ actor_rollout_ref }: TrainConfig, origin: RunOrigin | null): Promise<void> {
  const { mmproj } = actor_rollout_ref.model;
  if (mmproj === null || origin?.projector_hash === undefined) return;
  const path = origin.projector ?? mmproj;
  const hash = await hashFile(path).catch(() => null);
  if (hash === origin.projector_hash) return;
  throw refuseReplay("other-projector", hash === null ? "is not there" : "is another file than the run had", {
    subject: `the projector of the run, ${path}`,
    expected: origin.projector_hash.slice(0, 12),
    received: hash?.slice(0, 12) ?? "no such file",
    remedy: "put the run's projector back",
  });
}

/**
 * @param step step of the conversations to replay.
 * @param device device of the replaying engine.
 * @throws ConfigError if they ran on another class of kernels, whose last bits differ.
 */
export async function checkMachine(
  path: string,
  step: number,
  { store, device, origin }: { store: CheckpointStore; device: string; origin: RunOrigin | null },
): Promise<void> {
  if (origin?.device !== undefined && origin.device !== device) {
    throw refuseReplay("other-device", "was computed on another device", {
      subject: path,
      expected: origin.device,
      received: device,
      remedy: "replay it on a machine like the one that trained it",
    });
  }
  const recorded = await findMachine(path, step, store);
  const now = await describeMachine();
  if (device !== "cpu" || !recorded) return;
  if (recorded.cpu_kernel === now.cpu_kernel && recorded.ggml_build === now.ggml_build) return;
  const show = ({ cpu_kernel, ggml_build }: Machine) => `CPU kernel ${cpu_kernel} with ggml's build ${ggml_build}`;
  throw refuseReplay("other-kernel", "was computed by another class of kernels", {
    subject: path,
    expected: show(recorded),
    received: show(now),
    remedy: `CRIA_CPU_KERNEL=${recorded.cpu_kernel} asks for that kernel, where the CPU has it`,
  });
}

/** Finds the machine that took a step: from the first checkpoint after it, else the machine that trained last. */
async function findMachine(path: string, step: number, store: CheckpointStore): Promise<Machine | null> {
  const after = (await store.list()).filter((saved) => saved >= step).at(-1);
  const file = after === undefined ? join(path, "config.json") : join(store.folderOf(after), "data.json");
  try {
    return (JSON.parse(await readFile(file, "utf8")) as { machine?: Machine }).machine ?? null;
  } catch {
    return null;
  }
}
