export { writeGguf } from "./gguf.js";
export { LlamaModel } from "./llama-model.js";
export { LlamaSequence } from "./llama-sequence.js";
export { loadModel } from "./load-model.js";
export { findCudaFolder, type LoadModelOptions, type LoraOptions } from "./load-native.js";
export type {
  GgufFile,
  GgufTensor,
  GgufTensorType,
  GgufValue,
  SchedulerStats,
  TensorInfo,
  TensorPart,
} from "./native-types.js";
export { getRuntimeInfo } from "./runtime-info.js";
export { type LoadValueModelOptions, loadValueModel, ValueModel } from "./value-model.js";
