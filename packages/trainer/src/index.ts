export {
  type Checkpoint,
  CheckpointStore,
  restoreEngines,
  type TrainingState,
} from "./checkpoints/checkpoint-store.js";
export { type ConfigDifference, compareConfigs } from "./checkpoints/compare-configs.js";
export { countElements, isStateful, listTrained, type StatefulEngine } from "./checkpoints/engine-state.js";
export { checkRun, findCheckpoint, findRunPath, nameCommand, type OpenedRun, openRun } from "./checkpoints/open-run.js";
export type { RunEnd } from "./checkpoints/run-end.js";
export { RunFolder, type RunOrigin, writeAtomically, writeLines } from "./checkpoints/run-folder.js";
export { isAlive, RunLock } from "./checkpoints/run-lock.js";
export { type OpenedConversations, openConversations, openLosses } from "./cluster/open-participant.js";
export type {
  CoordinatedRun,
  Coordination,
  Leadership,
  SharedCheckpoint,
  StoredCheckpoint,
  TrainingBus,
} from "./cluster/training-bus.js";
export { applyOverride } from "./config/apply-override.js";
export { checkConfig, listLeaves } from "./config/check-config.js";
export { checkTrainPaths, listMissingTrainPaths } from "./config/check-train-paths.js";
export { countSamples, readContextSize, usesLora } from "./config/derived-values.js";
export { formatConversion } from "./config/from-verl/format-conversion.js";
export { convertVerlFiles } from "./config/from-verl/from-verl.js";
export { ShellReader, showWord } from "./config/from-verl/read-words.js";
export { listInert } from "./config/list-inert.js";
export { listWarnings } from "./config/list-warnings.js";
export { type LoadedConfig, loadConfig } from "./config/load-config.js";
export { checkArgument, listAddresses, listMissingPaths, pathKeys, resolvePath } from "./config/paths.js";
export { writeKey } from "./config/raw-config.js";
export { configFiles } from "./config/reference/config-files.js";
export { findConfigFile, findKeys, type KeyDetails } from "./config/reference/find-keys.js";
export { groupBySection, listKeys } from "./config/reference/list-keys.js";
export { makeReferenceFiles } from "./config/reference/reference-files.js";
export { type SftConfig, sftConfigSchema } from "./config/sft-config.js";
export { type TrainConfig, trainConfigSchema } from "./config/train-config.js";
export { listIgnoredKeys } from "./config/verl/ignored-keys.js";
export { findRenamed, listRenamedKeys } from "./config/verl/renamed-keys.js";
export { setAsideForeignKeys } from "./config/verl/set-aside-keys.js";
export { diagnoseRun } from "./diagnose/diagnose-run.js";
export { findProblems } from "./diagnose/find-problems.js";
export type { Evidence, Finding, Severity } from "./diagnose/finding.js";
export { describeRules } from "./diagnose/rules.js";
export type { RunContext } from "./diagnose/run-history.js";
export type {
  FilteredEvent,
  NoticeEvent,
  ProblemEvent,
  ProgressEvent,
  Report,
  RunEvent,
  StepEvent,
  ValidatedEvent,
  WarningEvent,
  WorkName,
} from "./events.js";
export {
  type FetchAddressesOptions,
  fetchAddresses,
  fetchData,
  fetchModel,
  fetchProjector,
  fetchTrainAddresses,
} from "./hub/fetch-addresses.js";
export { findModelFile } from "./hub/find-model-file.js";
export { type ClusterView, clusterViewSchema } from "./live/cluster-view.js";
export { type LivePhase, type LiveState, readLiveState } from "./live/live-state.js";
export { type Batch, type BatchScores, type MakeBatchOptions, makeBatch } from "./policy/batch.js";
export { describeVision } from "./policy/describe-vision.js";
export { Generation } from "./policy/generation.js";
export { loadConfiguredModel } from "./policy/load-configured-model.js";
export { type LoadPolicyOptions, loadPolicy } from "./policy/load-policy.js";
export { type GenerateTextOptions, Policy } from "./policy/policy.js";
export type { PolicyScoreOptions, TokenScores } from "./policy/token-scores.js";
export { computePolicyGradient, type GradientWork, type UpdateOptions } from "./policy/update-policy.js";
export * from "./replay/index.js";
export type { OtherReward } from "./rescore/rescore-config.js";
export { type RescoreOptions, type RescoreResult, rescoreRun } from "./rescore/rescore-run.js";
export type { ChangedJudgement, Means, RescoreCounts } from "./rescore/summarize.js";
export { type ContextUse, describeContext, listContexts, listContextWarnings } from "./run/list-contexts.js";
export { fromConfig, toConfig } from "./run/make-config.js";
export { TrainingInterrupted } from "./run/run-steps.js";
export type { Session } from "./run/session.js";
export { openSession } from "./run/session.js";
export { type TrainResult, TrainRun, type TrainStep, train } from "./run/train.js";
export type { PartialConfig, TrainOptions, ValidationOptions } from "./run/train-options.js";
export { type TrainSessionOptions, trainSession } from "./run/train-session.js";
export type { TrainSummary } from "./run/train-summary.js";
export { loadSftModel } from "./sft/open-sft.js";
export { readExamples } from "./sft/read-examples.js";
export { runSft, type SftResult } from "./sft/run-sft.js";
export { type AdvantageOptions, advantages } from "./step/advantages.js";
export { OTHER_CLASS } from "./step/correct-rollouts.js";
export { type Advantages, Groups } from "./step/groups.js";
export { countSteps } from "./step/learning-rate.js";
export { type RollOutOptions, RunningRollouts, rollOut } from "./step/roll-out.js";
export { runTrainingStep, type StepResult } from "./step/training-step.js";
export type { StepMetrics } from "./step-metrics.js";
export { Disposables } from "./task/disposables.js";
export type { Environment } from "./task/environment.js";
export { findOverlongPrompts } from "./task/find-overlong-prompts.js";
export { probeTemplate, type Render, type TemplateAbilities } from "./task/find-tool-format.js";
export { makeMultiTurnOptions } from "./task/multi-turn-options.js";
export { type BatchesOptions, defineTask, Task } from "./task/task.js";
export type { Episode, TaskDefinition, TaskReward, TaskRow } from "./task/task-definition.js";
export { makeTrackers } from "./trackers/open-trackers.js";
export type { RunStatus, TrackedRun, TrackedStep, Tracker } from "./trackers/tracker.js";
export { providePackages } from "./user-code/provide-packages.js";
export { openRegistries } from "./user-code/registries.js";
export { dumpTrajectories, listShown, saveDump } from "./validation/dump-trajectories.js";
export { runValidation } from "./validation/run-validation.js";
export { readSuccess, type Validation, validate } from "./validation/validate.js";
