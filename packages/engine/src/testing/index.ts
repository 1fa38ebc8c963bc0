export { listTypes as listTensorTypes } from "../gguf-files/tensor-types.js";
export { compareWithFloats, fillAdapter } from "./compare-with-floats.js";
export { type CheckedModel, checkGradients, type GradientCheck, weightedLogprobs } from "./finite-differences.js";
export { loadEmulated } from "./load-emulated.js";
export { CANDIDATE_COUNT, makeCandidateBatch, weightedCandidates } from "./make-candidate-batch.js";
export {
  describeTinyModel,
  makeNormals,
  makeTinyModel,
  randomTokens,
  type TinyModelOptions,
  textArchitectures,
} from "./make-tiny-model.js";
export { LONE_TOKENS, makeTreeBatch, TREE_TOKENS } from "./make-tree-batch.js";
export { mutateBytes, mutateProjector } from "./mutants.js";
export { type MemorySample, type MemoryTrend, measureMemoryTrend } from "./soak/memory-trend.js";
export { runSoak, type SoakOptions, type SoakReport } from "./soak/run-soak.js";
export { makeStubImage, StubProjector, type StubProjectorOptions } from "./stub-projector.js";
export { describeTinyProjector, makeTinyProjector, type TinyProjectorOptions } from "./tiny-projector.js";
export {
  listReferenceTargets,
  makeReferenceBatch,
  type ReferenceTraining,
  readTorchReference,
  type TorchReference,
  torchFamilies,
} from "./torch-reference.js";
export { drawPicture, imageTokens, pairPrompt, type VisionPair, visionPairs } from "./vision-pairs.js";
export { TinyModels } from "./with-tiny-model.js";
