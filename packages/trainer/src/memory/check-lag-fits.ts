import { ConfigError } from "@cria/core";
import { readGguf } from "@cria/engine";
import { resolveModel } from "@cria/hub";
import { readLag, usesLora } from "../config/derived-values.js";
import { resolvePath } from "../config/paths.js";
import type { TrainConfig } from "../config/train-config.js";
import { readAvailableMemory } from "./available-memory.js";
import { KEPT_VERSIONS, type ModelShape, readModelShape } from "./estimate-memory.js";
import { type MemoryNeed, measureNeed, usesGpu } from "./measure-need.js";

/**
 * Checks, before a run, that memory suffices for the versions that the config's lag keeps where all weights are
 * trained: each is a copy of them, and where it `sends` them to workers a second one, for a bus that loses its data. It
 * fetches a model that is an address.
 * @throws ConfigError "config/lag-beyond-memory", which names the largest lag that fits; HubError.
 */
export async function checkLagFits(config: TrainConfig, folder: string, { sends }: { sends: boolean }): Promise<void> {
  const lag = readLag(config);
  // A GPU has its own memory, of which nothing is known before the model is loaded.
  if (lag === 0 || usesLora(config) || config.trainer.val_only || usesGpu(config)) return;
  const model = await readShape(resolvePath(folder, config.actor_rollout_ref.model.path));
  if (!model) return;
  const alone = await measureNeed(config, folder, model, readAvailableMemory());
  const need = sends ? countSent(alone) : alone;
  if (need.fits) return;
  const fitting = findFittingLag(need, lag);
  const version = need.items.find(({ name }) => name === KEPT_VERSIONS)!.bytes / (lag + 1);
  throw new ConfigError("keeps more versions of all weights than memory has room for", {
    code: "config/lag-beyond-memory",
    subject: `trainer.v1.${config.trainer.v1.trainer_mode}.num_warmup_batches`,
    expected: fitting > 0 ? `at most ${fitting}` : "0: no version fits beside the training",
    received: `${lag}: about ${describeBytes(need.needed)} of ${describeBytes(need.available)}, ${lag + 1} versions of ${describeBytes(version)} among them`,
    remedy: `set it to ${fitting}, train an adapter (actor_rollout_ref.model.lora_rank), or lower what cria doctor lists`,
  });
}

/** The largest lag of a full training that fits in memory, by the needs with another lag; 0: none. */
export function findFittingLag({ items, needed, available }: MemoryNeed, lag: number): number {
  const kept = items.find(({ name }) => name === KEPT_VERSIONS)?.bytes ?? 0;
  if (kept === 0) return 0;
  const versions = Math.floor((available - (needed - kept)) / (kept / (lag + 1)));
  return Math.max(0, versions - 1);
}

function countSent({ available, ...need }: MemoryNeed): MemoryNeed {
  const items = need.items.map((item) => (item.name === KEPT_VERSIONS ? { ...item, bytes: 2 * item.bytes } : item));
  const needed = items.reduce((sum, { bytes }) => sum + bytes, 0);
  return { items, needed, available, fits: needed <= available };
}

/** null for a file that cannot be read: loading it says why. */
async function readShape(path: string): Promise<ModelShape | null> {
  const file = await resolveModel(path);
  return readGguf(file).then(readModelShape, () => null);
}

const describeBytes = (bytes: number) =>
  bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(2)} GB`;
