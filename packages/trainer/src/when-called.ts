// Functions of the interface that load their module when they are first called, so that a program which imports Cria starts at once.

import type { SftConfig } from "./config/sft-config.js";
import type { TrainConfig } from "./config/train-config.js";
import type { Finding } from "./diagnose/finding.js";
import type { LoadPolicyOptions } from "./policy/load-policy.js";
import type { Policy } from "./policy/policy.js";
import type { LoadTeacherOptions } from "./policy/teacher.js";
import type { Teacher } from "./policy/token-scores.js";
import type { OpenReplayOptions } from "./replay/open-replay.js";
import type { Replay } from "./replay/replay.js";
import type { RunTrainingOptions } from "./run/run-training.js";
import type { TrainSummary } from "./run/train-summary.js";
import type { OpenTrainingOptions, Training } from "./run/training.js";
import type { RunSftOptions } from "./sft/run-sft.js";
import type { SftResult } from "./sft/train-conversations.js";
import type { StepParts } from "./step/step-parts.js";
import type { StepInputs, StepResult } from "./step/training-step.js";
import type { ValidateOptions, Validation, ValidationParts } from "./validation/validate.js";

/**
 * Loads a model to generate with and to train.
 * @param path a GGUF file, or an address: hf:<owner>/<model>:<quantisation>.
 * @throws ConfigError for an option that is unknown or wrong; EngineError when it cannot be loaded or trained;
 * HubError when its address cannot be resolved.
 */
export async function loadPolicy(path: string, options: LoadPolicyOptions = {}): Promise<Policy> {
  return (await import("./policy/load-policy.js")).loadPolicy(path, options);
}

/**
 * Loads a model whose logprobs `policy.train` learns from, where its loss has a teacher: `losses.ppo({ teacher: {} })`.
 * @param path a GGUF file of any size with the policy's vocabulary.
 * @throws EngineError when it cannot be loaded; ConfigError for another vocabulary, a policy that sees images, or an
 * option that is unknown or wrong.
 */
export async function loadTeacher(path: string, policy: Policy, options: LoadTeacherOptions = {}): Promise<Teacher> {
  return (await import("./policy/teacher.js")).loadTeacher(path, policy, options);
}

/**
 * One training step, top to bottom: rollouts, rewards, logprobs, advantages, updates.
 * @throws ToolError when every conversation failed; the signal's reason when it aborts before the update.
 */
export async function runTrainingStep(parts: StepParts, inputs: StepInputs): Promise<StepResult> {
  return (await import("./step/training-step.js")).runTrainingStep(parts, inputs);
}

/** Rolls out the held-out rows. Success is only the score, without step rewards and shaping. */
export async function validate(parts: ValidationParts, options: ValidateOptions): Promise<Validation> {
  return (await import("./validation/validate.js")).validate(parts, options);
}

/** @throws ConfigError, DataError, EngineError or ToolError, each naming the mistake; nothing stays open then. */
export async function openTraining(
  config: TrainConfig,
  folder: string,
  options: OpenTrainingOptions = {},
): Promise<Training> {
  return (await import("./run/training.js")).openTraining(config, folder, options);
}

/**
 * A run of `cria train`, or with `val_only` a validation: takes the training steps of an open training, and validates before,
 * between and after them. Metrics and trajectories go to the run folder step by step, state and weights by save_freq,
 * save_minutes and at the end. With `rollout.deterministic` a resumed run computes what an uninterrupted one does.
 * When its signal aborts, rollouts, scoring and validation end at once, an update or a save only when it is finished;
 * the last finished step is then saved.
 * @throws TrainingInterrupted when its signal aborted.
 */
export async function runTraining(training: Training, options: RunTrainingOptions = {}): Promise<TrainSummary> {
  return (await import("./run/run-training.js")).runTraining(training, options);
}

/**
 * A run of `cria sft`: supervised fine-tuning on conversations, with run folder, validation, trackers, checkpoints and resume
 * as `cria train` has them.
 * @throws TrainingInterrupted when the signal aborts once training has begun.
 */
export async function runSft(config: SftConfig, folder: string, options: RunSftOptions = {}): Promise<SftResult> {
  return (await import("./sft/run-sft.js")).runSft(config, folder, options);
}

/**
 * Opens a run of `cria train` to replay its conversations: its model, data, tools and rewards are loaded. The run
 * folder is only read, also while the run trains.
 * @param path the run folder.
 * @throws DataError when it is none; ConfigError "replay/..." for a run that cannot be replayed; errors of opening a
 * training.
 */
export async function openReplay(path: string, options: OpenReplayOptions = {}): Promise<Replay> {
  return (await import("./replay/open-replay.js")).openReplay(path, options);
}

/**
 * Finds the problems of the run in a folder, by severity; of a running one up to now. Missing, damaged or partial
 * files count as far as they can be read; never throws.
 * @param folder a run folder of `cria train`. Others have no findings.
 */
export async function diagnoseRun(folder: string): Promise<Finding[]> {
  return (await import("./diagnose/diagnose-run.js")).diagnoseRun(folder);
}
