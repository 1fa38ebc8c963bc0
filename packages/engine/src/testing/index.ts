export { type CheckedModel, checkGradients, type GradientCheck, weightedLogprobs } from "./finite-differences.js";
export { loadEmulated } from "./load-emulated.js";
export { describeTinyModel, makeNormals, makeTinyModel, type TinyModelOptions } from "./make-tiny-model.js";
export { TinyModels } from "./with-tiny-model.js";
