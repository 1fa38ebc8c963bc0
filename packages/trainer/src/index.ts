export { type Checkpoint, CheckpointStore, type TrainingState } from "./checkpoints/checkpoint-store.js";
export { findCheckpoint, type OpenedRun, openRun } from "./checkpoints/open-run.js";
export { RunFolder, type RunOrigin } from "./checkpoints/run-folder.js";
export type {
  CoordinatedRun,
  Coordination,
  Leadership,
  SharedCheckpoint,
  StoredCheckpoint,
  TrainingBus,
} from "./cluster/training-bus.js";
export type { Settings } from "./config/import/settings.js";
export { type LoadedConfig, loadConfig } from "./config/load-config.js";
export { type SftConfig, sftConfigSchema } from "./config/sft-config.js";
export { type TrainConfig, trainConfigSchema } from "./config/train-config.js";
export type { Evidence, Finding, Severity } from "./diagnose/finding.js";
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
export { readLiveState } from "./live/live-state.js";
export { type Batch, type BatchScores, type MakeBatchOptions, makeBatch } from "./policy/batch.js";
export { Generation } from "./policy/generation.js";
export type { LoadPolicyOptions } from "./policy/load-policy.js";
export { type GenerateTextOptions, Policy } from "./policy/policy.js";
export type { LoadTeacherOptions } from "./policy/teacher.js";
export type {
  PolicyScoreOptions,
  Teacher,
  TeacherScoreOptions,
  TeacherScores,
  TokenScores,
} from "./policy/token-scores.js";
export type { GradientWork, UpdateOptions } from "./policy/update-policy.js";
export type {
  ForkOptions,
  ForkResult,
  OpenReplayOptions,
  RecordedToken,
  Replay,
  ReplayOptions,
  ReplayPlace,
  ReplayResult,
} from "./replay/index.js";
export { fromConfig, toConfig } from "./run/make-config.js";
export type { RunTrainingOptions } from "./run/run-training.js";
export { TrainingInterrupted } from "./run/steps.js";
export { TrainRun, train } from "./run/train.js";
export type {
  PartialConfig,
  ReplayedGroupsOptions,
  TeacherOptions,
  TrainOptions,
  ValidationOptions,
} from "./run/train-options.js";
export type { TrainResult, TrainStep } from "./run/train-result.js";
export type { TrainSummary } from "./run/train-summary.js";
export type { Training } from "./run/training.js";
export type { SftResult } from "./sft/train-conversations.js";
export { type AdvantageOptions, advantages } from "./step/advantages.js";
export { type Advantages, Groups } from "./step/groups.js";
export { countSteps } from "./step/learning-rate.js";
export { type RollOutOptions, RunningRollouts, rollOut } from "./step/roll-out.js";
export type { StepResult } from "./step/training-step.js";
export type { StepMetrics } from "./step-metrics.js";
export type { Environment } from "./task/environment.js";
export { type BatchesOptions, defineTask, Task } from "./task/task.js";
export type { Episode, TaskDefinition, TaskReward, TaskRow } from "./task/task-definition.js";
export type { RunStatus, TrackedRun, TrackedStep, Tracker } from "./trackers/tracker.js";
export { openRegistries } from "./user-code/registries.js";
export type { Validation } from "./validation/validate.js";
export {
  diagnoseRun,
  loadPolicy,
  loadTeacher,
  openReplay,
  openTraining,
  runSft,
  runTraining,
  runTrainingStep,
  validate,
} from "./when-called.js";
