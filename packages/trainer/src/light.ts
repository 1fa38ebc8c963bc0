// The part of this package that `cria` loads at start, without the code that runs it: see `light.ts` of @cria/tools.

export { CheckpointStore } from "./checkpoints/checkpoint-store.js";
export { findCheckpoint, openRun } from "./checkpoints/open-run.js";
export { RunFolder } from "./checkpoints/run-folder.js";
export { makeBatch } from "./policy/batch.js";
export { Generation } from "./policy/generation.js";
export { Policy } from "./policy/policy.js";
export { TrainingInterrupted } from "./run/steps.js";
export { TrainRun, train } from "./run/train.js";
export { advantages } from "./step/advantages.js";
export { Groups } from "./step/groups.js";
export { countSteps } from "./step/learning-rate.js";
export { RunningRollouts, rollOut } from "./step/roll-out.js";
export { defineTask, Task } from "./task/task.js";
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
