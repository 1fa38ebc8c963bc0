import { type AdvantageEstimator, composePolicyLoss, rewardStrategies } from "@cria/algorithms";
import { listMissingParameters, listTermTokens, resolveTeacherTerm } from "@cria/algorithms/internal";
import { policyLossParameters, teacherTermOptions } from "@cria/algorithms/schemas";
import { ConfigError } from "@cria/core";
import { groupSamplers } from "@cria/rollout";
import { getToolFormat } from "@cria/tools";
import { countSamples, usesLora } from "../config/derived-values.js";
import { trainKeys } from "../config/import/config-keys.js";
import type { Settings } from "../config/import/settings.js";
import type { TrainConfig } from "../config/train-config.js";
import type { TaskDefinition } from "../task/task-definition.js";
import type { Registries } from "../user-code/registries.js";
import { checkBranching } from "./check-branching.js";

/**
 * Checks what the schema cannot: names in registries, and settings that must fit together. No model is loaded yet, so a
 * typo does not cost the time of loading one or of a first batch of rollouts.
 * @param registries the run's registries, with the algorithms that the config loads by path.
 * @param task the task in memory, which supplements the config.
 * @throws ConfigError for the first error.
 */
export function checkTrainConfig(
  config: TrainConfig,
  { loss, lag }: Pick<Settings, "loss" | "lag">,
  registries: Registries,
  task?: TaskDefinition<object>,
): void {
  const { rollout } = config.actor_rollout_ref;
  checkNames(config, loss, registries);
  checkParameters(loss, registries);
  checkTeachers(config, loss, registries, task);
  composePolicyLoss(loss, registries);
  checkLoss(config);
  checkDemonstrations(config, loss, registries);
  checkLag(config, lag);
  checkPartialRollout(config, lag);
  checkRoles(config);
  checkBranching(config, registries, task);
  checkTurns(rollout.multi_turn, task);
  checkAlgorithm(config, registries);
  checkGroupSampler(config, registries);
  // Agent loops of a config file are not registered yet.
  if (rollout.agent.agent_loop_config_path === null) registries.agentLoops.get(rollout.agent.default_agent_loop);
  const { format } = rollout.multi_turn;
  // A user's parser is loaded together with the training.
  if (!format.includes("#")) getToolFormat(format, registries.toolFormats);
}

/** Checks the names of algorithms. */
function checkNames(
  { algorithm, actor_rollout_ref: { actor }, critic, reward_model }: TrainConfig,
  { lossMode }: Settings["loss"],
  { advantageEstimators, policyLosses, aggregations, klEstimates }: Registries,
): void {
  advantageEstimators.get(algorithm.adv_estimator, { subject: "algorithm.adv_estimator" });
  klEstimates.get(algorithm.kl_penalty, { subject: "algorithm.kl_penalty" });
  policyLosses.resolve(lossMode, { subject: "actor_rollout_ref.actor.policy_loss.loss_mode" });
  aggregations.get(actor.loss_agg_mode, { subject: "actor_rollout_ref.actor.loss_agg_mode" });
  klEstimates.get(actor.kl_loss_type, { subject: "actor_rollout_ref.actor.kl_loss_type" });
  aggregations.get(critic.loss_agg_mode, { subject: "critic.loss_agg_mode" });
  rewardStrategies.get(reward_model.aggregation.strategy, { subject: "reward_model.aggregation.strategy" });
}

/**
 * Refuses tools and interactions in conversations of one turn: they have no effect, and training would silently
 * continue without them.
 */
function checkTurns(
  multiTurn: TrainConfig["actor_rollout_ref"]["rollout"]["multi_turn"],
  { tools, interaction }: Partial<Pick<TaskDefinition<object>, "tools" | "interaction">> = {},
): void {
  if (multiTurn.enable) return;
  const section = "actor_rollout_ref.rollout.multi_turn";
  const given = {
    "tools of the task": typeof tools === "object" && Object.keys(tools).length > 0,
    "interaction of the task": interaction !== undefined && typeof interaction !== "string",
    [`${section}.tool_config_path`]: multiTurn.tool_config_path !== null,
    [`${section}.interaction_config_path`]: multiTurn.interaction_config_path !== null,
  };
  for (const [subject, isGiven] of Object.entries(given))
    if (isGiven)
      throw new ConfigError("has no effect in conversations of one turn", {
        code: "config/bad-value",
        subject,
        expected: `${section}.enable true`,
        received: "false",
        remedy: `set ${section}.enable to true, or leave ${subject.split(".").at(-1)} out`,
      });
}

function checkAlgorithm({ algorithm, actor_rollout_ref }: TrainConfig, registries: Registries): void {
  const { needs } = registries.advantageEstimators.get(algorithm.adv_estimator);
  const samples = countSamples(actor_rollout_ref.rollout);
  if (algorithm.adv_estimator === "grpo_passk" && samples < 2) {
    throw new ConfigError("compares the best rollout of a prompt with the second", {
      code: "config/bad-value",
      subject: "algorithm.adv_estimator grpo_passk",
      expected: "actor_rollout_ref.rollout.n of at least 2",
      received: String(samples),
    });
  }
  const { adv_estimator, use_kl_in_reward } = algorithm;
  const { branch_credit } = actor_rollout_ref.rollout;
  const isGrpo = branch_credit === "nodes" || branch_credit === "multi_trajectories";
  if (isGrpo && (adv_estimator !== "grpo" || use_kl_in_reward)) {
    throw new ConfigError("credits answers in the manner of grpo", {
      code: "config/bad-value",
      subject: `actor_rollout_ref.rollout.branch_credit ${branch_credit}`,
      expected: "algorithm.adv_estimator grpo, and use_kl_in_reward false",
      received: `${adv_estimator}, ${use_kl_in_reward}`,
      remedy: "actor.use_kl_loss has the KL in the loss; branch_credit: all_branches takes any estimator",
    });
  }
  checkNeeds(algorithm, needs);
  checkReplay({ algorithm, actor_rollout_ref }, needs);
  const { rollout_is, rollout_is_batch_normalize } = algorithm.rollout_correction;
  if (rollout_is_batch_normalize && (rollout_is === null || rollout_is === "none")) {
    throw new ConfigError("has no weights to normalise", {
      code: "config/bad-value",
      subject: "algorithm.rollout_correction.rollout_is_batch_normalize",
      expected: "rollout_is: token or sequence",
      received: `rollout_is: ${rollout_is}`,
    });
  }
}

/** Checks the names in the teacher's term, and that each teacher can differ from the policy. */
function checkTeachers(
  { distillation, algorithm, actor_rollout_ref: { rollout } }: TrainConfig,
  { teacher }: Settings["loss"],
  registries: Registries,
  task?: TaskDefinition<object>,
): void {
  if (!distillation.enabled) return;
  if (teacher) resolveTeacherTerm(teacher, registries, (option) => trainKeys.find(teacherTermOptions.shape[option])!);
  if (distillation.guided.share > 0) checkGuided(distillation, rollout);
  for (const [name, entry] of Object.entries(distillation.teacher_models)) {
    const subject = `distillation.teacher_models.${name}`;
    const refuse = (problem: string, key: string, expected: string, received: string) => {
      throw new ConfigError(problem, { code: "config/bad-value", subject: `${subject}.${key}`, expected, received });
    };
    const { weights, hint_key, correction_key, model_path, lora_adapter_path } = entry;
    if (weights === "live" && hint_key === null && correction_key === null)
      refuse(
        "teaches the policy what it says anyway",
        "hint_key",
        `a field of the rows, or ${subject}.correction_key, with weights live`,
        "null",
      );
    if (weights === "live" && (model_path !== null || lora_adapter_path !== null))
      refuse("is the policy, and another model is named", "weights", "base, or no model and no adapter", "live");
    for (const [key, value] of Object.entries({ hint_key, correction_key }))
      if (value !== null && (task?.agent !== undefined || rollout.agent.agent_loop_config_path !== null))
        refuse("stands in front of one conversation", key, "null for tasks with an agent", value);
    if (correction_key !== null && algorithm.replay.share > 0)
      refuse(
        "is a text of this step's judges, and replayed groups have no texts",
        "correction_key",
        "null, or algorithm.replay.share 0",
        correction_key,
      );
  }
}

/** Checks that each teacher can sample turns in place of the policy. */
function checkGuided(
  { guided, teacher_models }: TrainConfig["distillation"],
  rollout: TrainConfig["actor_rollout_ref"]["rollout"],
): void {
  const refuse = (problem: string, expected: string, received: string) => {
    throw new ConfigError(problem, {
      code: "config/bad-value",
      subject: "distillation.guided.share",
      expected: `0, or ${expected}`,
      received: `${guided.share}, and ${received}`,
    });
  };
  const teachers = Object.entries(teacher_models);
  if (teachers.length === 0)
    refuse("needs a model of its own", "distillation.teacher_models", "the policy's own model");
  for (const [name, { model_path, lora_adapter_path, hint_key, correction_key }] of teachers) {
    const key = `distillation.teacher_models.${name}`;
    for (const [hint, value] of Object.entries({ hint_key, correction_key }))
      if (value !== null)
        refuse("lets a teacher go on in the policy's prompt, without its hint", `${key}.${hint} null`, value);
    if (model_path === null && lora_adapter_path === null)
      refuse("needs a model of its own", `${key}.model_path or ${key}.lora_adapter_path`, "the policy's own model");
  }
  if (rollout.partial_rollout !== "carry_on")
    refuse(
      "has no effect where the newest policy samples each turn",
      "actor_rollout_ref.rollout.partial_rollout carry_on",
      rollout.partial_rollout,
    );
}

/** Checks that the choice of replayed groups has an effect. A user's sampler is loaded with the training. */
function checkGroupSampler({ algorithm }: TrainConfig, registries: Registries): void {
  const { share, sampling, sampling_kwargs } = algorithm.replay;
  if (!sampling.includes("#")) registries.groupSamplers.get(sampling);
  const isOwn = !groupSamplers.names().includes(sampling);
  if (share === 0 && isOwn)
    throw new ConfigError("chooses groups of earlier steps, and no step learns from any", {
      code: "config/bad-value",
      subject: "algorithm.replay.sampling",
      expected: "algorithm.replay.share above 0",
      received: `${sampling}, and a share of 0`,
      remedy: "set the share, or leave sampling out: a step always learns from all groups that it samples itself",
    });
  const [option] = Object.keys(sampling_kwargs);
  if (!isOwn && option !== undefined)
    throw new ConfigError("is an option of no built-in sampler of groups", {
      code: "config/bad-value",
      subject: `algorithm.replay.sampling_kwargs.${option}`,
      expected: 'a class or function of yours: algorithm.replay.sampling "./module.ts#export"',
      received: sampling,
      remedy: "leave it out",
    });
}

/** Checks that groups of earlier steps can be learned from again: only their tokens, logprobs and rewards are kept. */
function checkReplay(
  { algorithm, actor_rollout_ref: { model } }: Pick<TrainConfig, "algorithm" | "actor_rollout_ref">,
  needs: AdvantageEstimator["needs"],
): void {
  if (algorithm.replay.share === 0) return;
  const refuse = (problem: string, expected: string, received: string) => {
    throw new ConfigError(problem, {
      code: "config/bad-value",
      subject: "algorithm.replay.share",
      expected,
      received,
      remedy: "set it to 0",
    });
  };
  const costly = needs?.find((need) => need !== "rewardParts");
  if (costly !== undefined)
    refuse(
      "replays groups of which the estimator would need what was computed with them",
      "an algorithm.adv_estimator that compares rewards within a group",
      `${algorithm.adv_estimator}, which needs ${costly}`,
    );
  if (algorithm.use_kl_in_reward)
    refuse(
      "replays groups whose rewards had the KL of an earlier policy",
      "algorithm.use_kl_in_reward false; actor.use_kl_loss has the KL in the loss",
      "true",
    );
  if (algorithm.use_pf_ppo)
    refuse("replays groups, and updates train on conversations drawn from one step", "use_pf_ppo false", "true");
  if (model.mmproj !== null)
    refuse(
      "replays tokens, and those of images mean vectors that are gone",
      "a policy that reads texts alone: actor_rollout_ref.model.mmproj null",
      model.mmproj,
    );
}

/** Checks that the config provides what its estimator needs. */
function checkNeeds(algorithm: TrainConfig["algorithm"], needs: AdvantageEstimator["needs"]): void {
  const { adv_estimator, gdpo_reward_keys: keys, gdpo_reward_weights: weights } = algorithm;
  const refuse = (problem: string, subject: string, expected: string, received: string) => {
    throw new ConfigError(problem, { code: "config/bad-value", subject: `algorithm.${subject}`, expected, received });
  };
  if (needs?.includes("sumPiSquared") && algorithm.rollout_correction.bypass_mode)
    refuse(
      "needs the forward pass that bypass_mode leaves out",
      `adv_estimator ${adv_estimator}`,
      "algorithm.rollout_correction.bypass_mode false",
      "true",
    );
  if (needs?.includes("rewardParts")) {
    if (keys === null)
      refuse(
        "must be told the parts of the reward",
        "gdpo_reward_keys",
        "names of numbers that the reward function returns, such as [score, format]",
        "null",
      );
    if (algorithm.use_kl_in_reward)
      refuse(
        "normalises the parts of the reward, of which the KL is none",
        `adv_estimator ${adv_estimator}`,
        "algorithm.use_kl_in_reward false; actor.use_kl_loss has the KL in the loss",
        "true",
      );
  }
  if (weights !== null && weights.length !== keys?.length)
    refuse(
      "has not one weight for each key",
      "gdpo_reward_weights",
      `${keys?.length ?? 0} numbers, as many as gdpo_reward_keys`,
      String(weights.length),
    );
}

/** Checks that the loss has its required parameters. */
function checkParameters(loss: Settings["loss"], { policyLosses }: Registries): void {
  const [missing] = listMissingParameters(policyLosses.resolve(loss.lossMode), loss);
  if (missing === undefined) return;
  throw new ConfigError(`must be told with the loss "${loss.lossMode}"`, {
    code: "config/bad-value",
    subject: trainKeys.find(policyLossParameters.shape[missing])!,
    expected: policyLossParameters.shape[missing].description,
    received: "null",
  });
}

/** Checks that the config's lag is possible. */
function checkLag({ trainer, data, actor_rollout_ref: { actor } }: TrainConfig, lag: number): void {
  const refuse = (problem: string, subject: string, expected: string, received: string) => {
    throw new ConfigError(problem, { code: "config/bad-value", subject, expected, received });
  };
  const { trainer_mode: mode, separate_async, sampler } = trainer.v1;
  const key = `trainer.v1.${mode}.num_warmup_batches`;
  const { max_off_policy_threshold: most } = sampler;
  if (most !== null && lag > most)
    refuse(
      "makes every step older than is allowed",
      key,
      `at most trainer.v1.sampler.max_off_policy_threshold, ${most}`,
      String(lag),
    );
  const { parameter_sync_step: updates } = separate_async;
  const prompts = updates * actor.ppo_mini_batch_size;
  if (mode === "separate_async" && data.train_batch_size !== prompts)
    refuse(
      "is not the mini-batches between two versions",
      "data.train_batch_size",
      `${prompts}: trainer.v1.separate_async.parameter_sync_step ${updates} x actor_rollout_ref.actor.ppo_mini_batch_size ${actor.ppo_mini_batch_size}`,
      String(data.train_batch_size),
    );
}

/** Checks that each role can have an adapter of its own. */
function checkRoles(config: TrainConfig): void {
  const { model, rollout } = config.actor_rollout_ref;
  const { lora_roles: roles } = model;
  if (!roles) return;
  const refuse = (problem: string, expected: string, received: string) => {
    throw new ConfigError(problem, {
      code: "config/bad-value",
      subject: "actor_rollout_ref.model.lora_roles",
      expected: `null, or ${expected}`,
      received: `${roles.join(", ")}, and ${received}`,
    });
  };
  if (!usesLora(config))
    refuse("gives each role an adapter", "actor_rollout_ref.model.lora_rank above 0", "lora_rank 0");
  if (rollout.partial_rollout !== "carry_on")
    refuse(
      "has versions that the conversations of agents keep",
      "actor_rollout_ref.rollout.partial_rollout carry_on",
      rollout.partial_rollout,
    );
}

/** Checks that demonstrations have a weight in the loss, and that there are some if they have. */
function checkDemonstrations({ data }: TrainConfig, loss: Settings["loss"], registries: Registries): void {
  const { files } = data.demonstrations;
  const isSeen = listTermTokens(loss, registries).some(({ tokens }) => tokens === "demonstrated");
  if (isSeen === (files !== null)) return;
  const coefficient = "actor_rollout_ref.actor.demonstration_coeff";
  throw new ConfigError(
    isSeen ? "has no demonstrations to learn from" : "has no effect: no term of the loss sees them",
    {
      code: "config/bad-value",
      subject: isSeen ? coefficient : "data.demonstrations.files",
      expected: isSeen ? "files of conversations: data.demonstrations.files" : `a weight above 0: ${coefficient}`,
      received: isSeen ? "null" : "0",
    },
  );
}

/** Checks that the settings of the loss fit together. */
function checkLoss({ algorithm, actor_rollout_ref }: TrainConfig): void {
  const { policy_loss: loss } = actor_rollout_ref.actor;
  const { bypass_mode, loss_type } = algorithm.rollout_correction;
  const refuse = (problem: string, subject: string, expected: string, received: string) => {
    throw new ConfigError(problem, { code: "config/bad-value", subject, expected, received });
  };
  const key = "actor_rollout_ref.actor.policy_loss.loss_mode";
  if (loss.loss_mode === "bypass_mode" && !bypass_mode)
    refuse(
      "is the loss of a sampler whose logprobs are the old ones",
      `${key} bypass_mode`,
      "algorithm.rollout_correction.bypass_mode true",
      "false",
    );
  if (loss_type === "reinforce" && !bypass_mode)
    refuse(
      "has an effect with bypass_mode alone",
      "algorithm.rollout_correction.loss_type reinforce",
      "algorithm.rollout_correction.bypass_mode true",
      "false",
    );
  if (loss_type === "reinforce" && !["vanilla", "bypass_mode"].includes(loss.loss_mode))
    refuse("says another loss than rollout_correction.loss_type reinforce", key, "bypass_mode", loss.loss_mode);
}

function checkPartialRollout({ actor_rollout_ref: { rollout } }: TrainConfig, lag: number): void {
  if (rollout.partial_rollout === "carry_on" || lag > 0) return;
  throw new ConfigError("has no effect where each step's conversations end before its update", {
    code: "config/bad-value",
    subject: "actor_rollout_ref.rollout.partial_rollout",
    expected: "trainer.v1.colocate_async.num_warmup_batches of at least 1",
    received: `${rollout.partial_rollout}, and no lag`,
    remedy: "set a lag (trainer.v1.trainer_mode is colocate_async then), or leave it out",
  });
}
