import type { PolicyEngine, PolicyVersion } from "@cria/core";
import { noteVersion } from "./kept-versions.js";
import type { LlamaSequence } from "./llama-sequence.js";
import { callNative } from "./native.js";
import type { NativeModel } from "./native-types.js";

/** An engine whose trained tensors can be read and written. */
interface EngineOfTensors extends PolicyEngine {
  readTensor(name: string): Promise<Float32Array>;
  writeTensor(name: string, values: Float32Array): Promise<void>;
}

/** A kept version of the trained weights. Made by `LlamaModel.keepVersion`. */
export class LlamaPolicyVersion<Live extends EngineOfTensors> implements PolicyVersion {
  /** Reads and writes the values of this version's tensors; nothing may be sampled while they are written. */
  readonly engine: Live;

  constructor(
    private readonly native: NativeModel,
    private readonly version: number,
    live: Live,
    createSequence: () => LlamaSequence,
  ) {
    const own: Pick<EngineOfTensors, "createSequence" | "readTensor" | "writeTensor"> = {
      createSequence,
      readTensor: (name) => callNative(() => native.readTensor(name, "value", version)),
      writeTensor: (name, values) => callNative(() => native.writeTensor(name, "value", values, version)),
    };
    // Everything else is the live engine's: one model, one vocabulary, one store of images.
    this.engine = Object.create(live, Object.getOwnPropertyDescriptors(own));
    noteVersion(this.engine, native, version);
  }

  save(path: string): Promise<void> {
    return callNative(() => this.native.saveVersion(this.version, path));
  }

  dispose(): Promise<void> {
    return callNative(() => this.native.dropVersion(this.version));
  }
}
