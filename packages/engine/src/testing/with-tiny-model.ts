import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LlamaModel } from "../llama-model.js";
import { loadModel } from "../load-model.js";
import type { LoadModelOptions } from "../load-native.js";
import { makeTinyModel, type TinyModelOptions } from "./make-tiny-model.js";

/** A folder of tiny models and everything loaded from it; `cleanUp` frees both. */
export class TinyModels {
  readonly folder = mkdtempSync(join(tmpdir(), "cria-test-"));
  private readonly loaded: LlamaModel[] = [];
  private count = 0;

  async write(tiny: TinyModelOptions = {}): Promise<string> {
    const path = join(this.folder, `model-${this.count++}.gguf`);
    await makeTinyModel(path, tiny);
    return path;
  }

  async load(
    tiny: TinyModelOptions = {},
    options: Omit<LoadModelOptions, "path"> & { path?: string } = {},
  ): Promise<LlamaModel> {
    const path = options.path ?? (await this.write(tiny));
    const model = await loadModel({ contextSize: 128, maxSequences: 4, threads: 1, ...options, path });
    this.loaded.push(model);
    return model;
  }

  async cleanUp(): Promise<void> {
    await Promise.all(this.loaded.map((model) => model.dispose()));
    rmSync(this.folder, { recursive: true, force: true });
  }
}
