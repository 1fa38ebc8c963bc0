import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ImageStore } from "../images/image-store.js";
import { LlamaModel } from "../llama-model.js";
import { loadModel } from "../load-model.js";
import { type LoadModelOptions, loadNative } from "../load-native.js";
import type { NativeLoadOptions } from "../native-types.js";
import { DEEP_LAYERS, makeTinyModel, type TinyModelOptions } from "./make-tiny-model.js";
import { StubProjector, type StubProjectorOptions } from "./stub-projector.js";

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

  /** The same with images, whose vectors are random numbers. */
  async loadWithStub(
    tiny: TinyModelOptions = {},
    { imageMemory = 1 << 24, ...options }: Omit<LoadModelOptions, "path"> & { path?: string } = {},
    { emulatedDevice, ...stub }: Partial<StubProjectorOptions> & Pick<NativeLoadOptions, "emulatedDevice"> = {},
  ): Promise<LlamaModel & { images: ImageStore; projector: StubProjector }> {
    const path = options.path ?? (await this.write(tiny));
    const sizes = { contextSize: 128, maxSequences: 4, threads: 1 };
    const native = await loadNative({ ...sizes, ...options, path }, { emulatedDevice });
    const { architecture, embeddingSize, vocabSize } = native.info();
    const vectorSize = embeddingSize * (architecture === "qwen3vl" ? 1 + (tiny.deepLayers ?? DEEP_LAYERS) : 1);
    const projector = new StubProjector({ vectorSize, hasGrid: architecture.endsWith("vl"), ...stub });
    const info = { path: "stub", type: "stub", hash: "stub" };
    const images = new ImageStore(native, projector, info, { vocabSize, memoryLimit: imageMemory });
    const model = Object.assign(new LlamaModel(native, images), { images, projector });
    this.loaded.push(model);
    return model;
  }

  async cleanUp(): Promise<void> {
    await Promise.all(this.loaded.map((model) => model.dispose()));
    rmSync(this.folder, { recursive: true, force: true });
  }
}
