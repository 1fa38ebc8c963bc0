import type { PolicyEngine, PolicyVersion } from "@cria/core";
import type { LlamaSequence } from "./llama-sequence.js";
import { callNative } from "./native.js";
import type { NativeModel } from "./native-types.js";

/** A kept version of the LoRA adapter. Made by `LlamaModel.keepVersion`. */
export class LlamaPolicyVersion implements PolicyVersion {
  readonly engine: PolicyEngine;

  constructor(
    private readonly native: NativeModel,
    private readonly version: number,
    live: PolicyEngine,
    createSequence: () => LlamaSequence,
  ) {
    // All else is the live engine's: one model, one vocabulary, one store of images.
    this.engine = Object.create(live, { createSequence: { value: createSequence } });
  }

  saveAdapter(path: string): Promise<void> {
    return callNative(() => this.native.saveAdapter(path, this.version));
  }

  dispose(): Promise<void> {
    return callNative(() => this.native.dropVersion(this.version));
  }
}
