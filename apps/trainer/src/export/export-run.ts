import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConfigError } from "@cria/core";
import { guardWrite } from "@cria/core/internal";
import { type ExportModelResult, exportModel } from "@cria/engine";
import type { Trained } from "./find-trained.js";
import { restoreModel } from "./restore-model.js";

export interface ExportOptions {
  /** File for the adapter; null: none. */
  adapter: string | null;
  /** File for the model with the trained weights merged; null: none. */
  merged: string | null;
  /** One of `listQuantizeTypes()`; null: tensors keep their types. */
  quantize: string | null;
}

export interface ExportResult {
  /** Its training step; null when the run kept only weights. */
  step: number | null;
  adapter: string | null;
  merged: ({ file: string } & ExportModelResult) | null;
}

/**
 * Writes a run's weights as GGUF files that stock llama.cpp loads.
 * @throws ConfigError, DataError or EngineError
 */
export async function exportRun(trained: Trained, options: ExportOptions): Promise<ExportResult> {
  const { lora } = trained;
  if (options.adapter && !lora) {
    throw new ConfigError("was trained in full", {
      code: "config/no-adapter",
      subject: "--adapter: the run",
      expected: "a run with model.lora_rank above 0",
      received: "lora_rank 0",
      remedy: "export the whole model: --merged out.gguf",
    });
  }
  const folder = await mkdtemp(join(tmpdir(), "cria-export-"));
  try {
    const weights = join(folder, "weights.gguf");
    await writeWeights(trained, weights);
    if (options.adapter) await guardWrite(options.adapter, () => copyFile(weights, options.adapter!));
    const { merged, quantize } = options;
    return {
      step: trained.checkpoint?.step ?? null,
      adapter: options.adapter,
      merged: merged
        ? {
            file: merged,
            ...(await exportModel(
              lora
                ? { base: trained.base, adapter: weights, output: merged, quantize }
                : { base: weights, output: merged, quantize },
            )),
          }
        : null,
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The trained adapter (with full training the model), from the checkpoint or the run's final files. */
async function writeWeights({ lora, load, checkpoint, weights, role }: Trained, file: string) {
  if (!checkpoint) return copyFile(weights!, file);
  const model = await restoreModel(load({ device: "cpu", contextSize: 64, maxSequences: 1 }), checkpoint, role);
  try {
    await (lora ? model.saveAdapter(file) : model.saveModel(file));
  } finally {
    await model.dispose();
  }
}
