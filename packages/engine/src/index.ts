export { resolveModel } from "@cria/hub";
export { type BackendName, type BackendPart, inspectBackend } from "./backends.js";
export { type ExportModelOptions, type ExportModelResult, exportModel } from "./gguf-files/export-model.js";
export { listQuantizeTypes, type QuantizeOptions, quantizeModel } from "./gguf-files/quantize-model.js";
export { type GgufEntry, type GgufHeader, type GgufTensorInfo, readGguf } from "./gguf-files/read-gguf.js";
export type { TensorType } from "./gguf-files/tensor-types.js";
export { type GgufContent, type LazyGgufTensor, writeGguf } from "./gguf-files/write-gguf.js";
export { inspectVision, type VisionSupport } from "./images/vision-library.js";
export { LlamaModel } from "./llama-model.js";
export { LlamaSequence } from "./llama-sequence.js";
export { loadModel } from "./load-model.js";
export type { LoadModelOptions, LoraOptions } from "./load-native.js";
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
