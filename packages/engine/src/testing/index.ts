export { type CheckedModel, checkGradients, type GradientCheck, weightedLogprobs } from "./finite-differences.js";
export { loadEmulated } from "./load-emulated.js";
export { describeTinyModel, makeNormals, makeTinyModel, type TinyModelOptions } from "./make-tiny-model.js";
export { LONE_TOKENS, makeTreeBatch, TREE_TOKENS } from "./make-tree-batch.js";
export { type MemorySample, type MemoryTrend, measureMemoryTrend } from "./soak/memory-trend.js";
export { runSoak, type SoakOptions, type SoakReport } from "./soak/run-soak.js";
export { TinyModels } from "./with-tiny-model.js";
