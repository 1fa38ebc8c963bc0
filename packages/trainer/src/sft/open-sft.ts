import { type LlamaModel, type LoadModelOptions, loadModel } from "@cria/engine";
import { parseFilter } from "@cria/records";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { sftKeys } from "../config/import/config-keys.js";
import { imageOptions } from "../config/options/environment.js";
import { resolvePath } from "../config/paths.js";
import { listTargets } from "../config/sections/target-modules.js";
import type { SftConfig } from "../config/sft-config.js";
import { findMissingTargets } from "../hub/find-missing-targets.js";
import { describeVision, makeImageAccess } from "../policy/describe-vision.js";
import { loadRowMap } from "../task/open-data.js";
import { openExamples } from "../task/open-examples.js";
import type { SftExample } from "../task/read-examples.js";
import { providePackages } from "../user-code/provide-packages.js";

/** The loaded model and data of a `cria sft` config. */
export interface SftTraining {
  config: SftConfig;
  engine: LlamaModel;
  examples: SftExample[];
  /** Held-out conversations; empty without data.val_files. */
  valExamples: SftExample[];
}

export interface OpenSftOptions {
  signal?: AbortSignal;
  /** Called while conversations are tokenized. */
  onProgress?: (done: number, total: number) => void;
  /** Called with a warning of settings. */
  onWarning?: (warning: string) => void;
  /** Called once for each kind of file with what was left out or could not be distinguished. */
  onNote?: (note: string) => void;
}

/** Loads the model that a `cria sft` config trains: with a new adapter, or fully trainable. @throws EngineError */
export function loadSftModel(
  { model, data, trainer }: SftConfig,
  folder: string,
  overrides: Partial<LoadModelOptions> = {},
): Promise<LlamaModel> {
  const lora =
    model.lora_rank > 0
      ? { rank: model.lora_rank, alpha: model.lora_alpha, targets: listTargets(model.target_modules) }
      : null;
  return loadModel({
    path: resolvePath(folder, model.path),
    ...describeVision(model, folder),
    trainable: lora ? "lora" : "full",
    lora,
    // Nothing is generated: training and scoring do not use the KV cache.
    contextSize: 64,
    scoredContextSize: data.max_length,
    maxSequences: 2,
    seed: trainer.seed,
    device: trainer.device,
    threads: trainer.threads ?? undefined,
    ...overrides,
  });
}

/** @throws EngineError, DataError, or the signal's reason; nothing stays open then. */
export async function openSft(config: SftConfig, folder: string, options: OpenSftOptions = {}): Promise<SftTraining> {
  const { data } = config;
  providePackages();
  const map = await loadRowMap(data.map, folder);
  const keep = data.keep === null ? null : parseFilter(data.keep, "data.keep");
  await warnOfTargets(config, folder, options.onWarning);
  const engine = await loadSftModel(config, folder);
  try {
    const tokenizer = DeltaTokenizer.forModel(engine, { allowControlTokens: data.allow_control_tokens });
    const read = (files: readonly string[]) =>
      openExamples(files, folder, tokenizer, {
        messagesKey: data.messages_key,
        toolsKey: data.tools_key,
        imagesKey: data.image_key,
        images: makeImageAccess(sftKeys.read(config, imageOptions)),
        maxLength: data.max_length,
        map,
        keep,
        keys: { keep: "data.keep", maxLength: "data.max_length" },
        onProgress: (done, total) => {
          options.signal?.throwIfAborted();
          options.onProgress?.(done, total);
        },
        onNote: options.onNote,
      });
    const examples = await read(data.train_files);
    const valExamples = data.val_files ? await read(data.val_files) : [];
    return { config, engine, examples, valExamples };
  } catch (error) {
    await engine.dispose();
    throw error;
  }
}

async function warnOfTargets({ model }: SftConfig, folder: string, warn: OpenSftOptions["onWarning"]): Promise<void> {
  if (!warn || model.lora_rank === 0) return;
  const missing = await findMissingTargets(resolvePath(folder, model.path), model.target_modules);
  if (missing) warn(`model.target_modules: ${missing.found}; ${missing.remedy}`);
}
