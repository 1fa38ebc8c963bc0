import { statSync } from "node:fs";
import type { LlamaModel, LoadModelOptions } from "@cria/engine";
import type { TrainConfig } from "@cria/trainer";
import { loadConfiguredModel, readContextSize, resolvePath } from "@cria/trainer/internal";
import { computeClass } from "../jobs/compute-class.js";
import { writeWeights } from "../jobs/weights.js";

export type ModelOverrides = Pick<LoadModelOptions, "path" | "mmproj" | "device" | "threads"> &
  Partial<Pick<LoadModelOptions, "maxSequences">>;

/** A worker's only loaded model. It stays for the next run that loads the same files in the same way. */
export class ModelSlot {
  private loaded: { key: string; engine: LlamaModel; classes: Map<string, string> } | null = null;

  /**
   * @param hashes SHA-256 of the opened files: of the model, and of its projector ("": none).
   * @param folder base of the config's paths.
   * @param overrides paths of the files; the config's paths are the coordinator's.
   * @throws EngineError; nothing is loaded then.
   */
  async open(
    hashes: readonly string[],
    config: TrainConfig,
    folder: string,
    overrides: ModelOverrides & { mmproj: string | undefined },
  ): Promise<LlamaModel> {
    const { model, rollout } = config.actor_rollout_ref;
    const { max_num_seqs, kv_cache_dtype, deterministic } = rollout;
    const adapter = model.lora_adapter_path && resolvePath(folder, model.lora_adapter_path);
    const changed = adapter ? statSync(adapter, { throwIfNoEntry: false })?.mtimeMs : undefined;
    // Everything that loading reads, except the seed of weights that are never used.
    const sizes = { context: readContextSize(config), max_num_seqs, kv_cache_dtype, deterministic };
    const key = JSON.stringify([hashes, { ...model, path: null, mmproj: null }, sizes, adapter, changed, overrides]);
    if (this.loaded?.key === key) return this.loaded.engine;
    await this.dispose();
    const engine = await loadConfiguredModel(config, folder, overrides);
    this.loaded = { key, engine, classes: new Map() };
    return engine;
  }

  /** The class of the engine's bits, with the weights that a training starts from; computed once. */
  async findClass(
    sha256: string,
    weights: string,
    fetch: (weights: string) => Promise<Uint8Array>,
    signal: AbortSignal,
  ): Promise<string> {
    const { engine, classes } = this.loaded!;
    const known = classes.get(weights);
    if (known !== undefined) return known;
    await writeWeights(engine, await fetch(weights));
    const found = await computeClass(engine, sha256, signal);
    classes.set(weights, found);
    return found;
  }

  async dispose(): Promise<void> {
    const { loaded } = this;
    this.loaded = null;
    await loaded?.engine.dispose();
  }
}
