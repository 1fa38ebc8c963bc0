import type { PolicyVersion } from "@cria/core";
import type { LlamaModel } from "./llama-model.js";
import type { LlamaSequence } from "./llama-sequence.js";
import { callNative } from "./native.js";
import type { NativeModel } from "./native-types.js";

/** A kept version of the LoRA adapter. Made by `LlamaModel.keepVersion`. */
export class LlamaPolicyVersion implements PolicyVersion {
  /** Reads and writes the values of this version's tensors; nothing may be sampled while they are written. */
  readonly engine: LlamaModel;

  constructor(
    private readonly native: NativeModel,
    private readonly version: number,
    live: LlamaModel,
    createSequence: () => LlamaSequence,
  ) {
    const own: Pick<LlamaModel, "createSequence" | "readTensor" | "writeTensor"> = {
      createSequence,
      readTensor: (name) => callNative(() => native.readTensor(name, "value", version)),
      writeTensor: (name, values) => callNative(() => native.writeTensor(name, "value", values, version)),
    };
    // All else is the live engine's: one model, one vocabulary, one store of images.
    this.engine = Object.create(live, Object.getOwnPropertyDescriptors(own));
  }

  saveAdapter(path: string): Promise<void> {
    return callNative(() => this.native.saveAdapter(path, this.version));
  }

  dispose(): Promise<void> {
    return callNative(() => this.native.dropVersion(this.version));
  }
}
