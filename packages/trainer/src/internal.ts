// For the other packages of Cria: names of the package that are no part of its interface, and change without notice. `index.ts` has what
// users' programs need.

export { policyLossParameters, policyLossTerms, teacherTermOptions } from "@cria/algorithms/schemas";
export { restoreEngines } from "./checkpoints/checkpoint-store.js";
export { type ConfigDifference, compareConfigs } from "./checkpoints/compare-configs.js";
export { countElements } from "./checkpoints/engine-state.js";
export { checkRun, findRunPath, nameCommand } from "./checkpoints/open-run.js";
export type { RunEnd } from "./checkpoints/run-end.js";
export { writeAtomically, writeLines } from "./checkpoints/run-folder.js";
export { isAlive, RunLock } from "./checkpoints/run-lock.js";
export { type OpenedConversations, openConversations, openLosses } from "./cluster/open-participant.js";
export { applyOverride } from "./config/apply-override.js";
export { checkConfig, listLeaves } from "./config/check-config.js";
export { checkTrainPaths, listMissingTrainPaths } from "./config/check-train-paths.js";
export { countSamples, readContextSize, readLag, usesLora } from "./config/derived-values.js";
export { formatConversion } from "./config/from-verl/format-conversion.js";
export { convertVerlFiles } from "./config/from-verl/from-verl.js";
export { ShellReader, showWord } from "./config/from-verl/read-words.js";
export { importMultiTurn } from "./config/import/environment.js";
export { importSampling } from "./config/import/sampling.js";
export { importSettings } from "./config/import/settings.js";
export { listInert } from "./config/list-inert.js";
export { listWarnings } from "./config/list-warnings.js";
export { checkArgument, listAddresses, listMissingPaths, pathKeys, resolvePath } from "./config/paths.js";
export { writeKey } from "./config/raw-config.js";
export { configFiles } from "./config/reference/config-files.js";
export { findConfigFile, findKeys, type KeyDetails } from "./config/reference/find-keys.js";
export { groupBySection, listKeys } from "./config/reference/list-keys.js";
export { makeReferenceFiles } from "./config/reference/reference-files.js";
export { findRenamed, listIgnoredKeys, listRenamedKeys } from "./config/verl/foreign-keys.js";
export { setAsideForeignKeys } from "./config/verl/set-aside-keys.js";
export { findProblems } from "./diagnose/find-problems.js";
export { describeRules } from "./diagnose/rules.js";
export type { RunContext } from "./diagnose/run-history.js";
export {
  type FetchAddressesOptions,
  fetchAddresses,
  fetchData,
  fetchModel,
  fetchProjector,
  fetchTrainAddresses,
} from "./hub/fetch-addresses.js";
export { findModelFile } from "./hub/find-model-file.js";
export * from "./index.js";
export { readAvailableMemory } from "./memory/available-memory.js";
export { findFittingLag } from "./memory/check-lag-fits.js";
export { estimateMemory, type MemoryItem, type ModelShape, readModelShape } from "./memory/estimate-memory.js";
export { type MemoryNeed, measureNeed, usesGpu } from "./memory/measure-need.js";
export { describeVision } from "./policy/describe-vision.js";
export { loadConfiguredModel } from "./policy/load-configured-model.js";
export { nameForRole, type Role } from "./policy/of-role.js";
export { isStateful, listTrained, type StatefulEngine } from "./policy/stateful-engine.js";
export { computePolicyGradient } from "./policy/update-policy.js";
export { checkReplayModel } from "./replay/index.js";
export type { OtherReward } from "./rescore/rescore-config.js";
export { type RescoreOptions, type RescoreResult, rescoreRun } from "./rescore/rescore-run.js";
export type { ChangedJudgement, Means, RescoreCounts } from "./rescore/summarize.js";
export { checkTrainConfig } from "./run/check-train-config.js";
export { type ContextUse, describeContext, listContexts, listContextWarnings } from "./run/list-contexts.js";
export { listFormatWarnings } from "./run/list-format-warnings.js";
export { listTargetWarnings } from "./run/list-targets.js";
export { listEngines } from "./run/run-state.js";
export { loadSftModel } from "./sft/open-sft.js";
export { OTHER_CLASS } from "./step/correct-rollouts.js";
export { Disposables } from "./task/disposables.js";
export { findOverlongPrompts } from "./task/find-overlong-prompts.js";
export { probeModel, probeTemplate, type Render, type TemplateAbilities } from "./task/find-tool-format.js";
export { openMultiTurn } from "./task/multi-turn-options.js";
export { readExamples } from "./task/read-examples.js";
export { makeTrackers } from "./trackers/open-trackers.js";
export { loadAlgorithms } from "./user-code/load-algorithms.js";
export { providePackages } from "./user-code/provide-packages.js";
export { dumpTrajectories, listShown, saveDump } from "./validation/dump-trajectories.js";
export { runValidation } from "./validation/run-validation.js";
export { readSuccess } from "./validation/validate.js";
