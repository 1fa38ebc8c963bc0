import { advantageEstimators, aggregations, composePolicyLoss, klEstimates, rewardStrategies } from "@cria/algorithms";
import { ConfigError } from "@cria/core";
import { getAgentLoop } from "@cria/rollout";
import { getToolParser } from "@cria/tools";
import { makeRolloutCorrectionOptions } from "../train/algorithm-options.js";
import { countSamples } from "../train/multi-turn-options.js";
import { makePolicyLossOptions } from "../train/policy-loss-options.js";
import type { TrainConfig } from "./train-config.js";

/**
 * What the schema cannot see: names in registries. Nothing is loaded yet, so a typo does not cost the time of loading a
 * model or of a first batch of rollouts.
 * @throws ConfigError for the first thing wrong.
 */
export function checkTrainConfig(config: TrainConfig): void {
  const { actor, rollout } = config.actor_rollout_ref;
  composePolicyLoss(makePolicyLossOptions(actor, rollout.response_length));
  klEstimates.get(actor.kl_loss_type);
  rewardStrategies.get(config.reward_model.aggregation.strategy);
  klEstimates.get(config.algorithm.kl_penalty);
  checkAlgorithm(config);
  // A config's own loops are not registered yet.
  if (rollout.agent.agent_loop_config_path === null) getAgentLoop(rollout.agent.default_agent_loop);
  const { format } = rollout.multi_turn;
  // A parser of the user's is loaded with the session.
  if (!format.includes("#")) getToolParser(format);
}

function checkAlgorithm({ algorithm, actor_rollout_ref, critic }: TrainConfig): void {
  advantageEstimators.get(algorithm.adv_estimator);
  aggregations.get(critic.loss_agg_mode);
  const samples = countSamples(actor_rollout_ref.rollout);
  if (algorithm.adv_estimator === "grpo_passk" && samples < 2) {
    throw new ConfigError("compares the best rollout of a prompt with the second", {
      code: "config/bad-value",
      subject: "algorithm.adv_estimator grpo_passk",
      expected: "actor_rollout_ref.rollout.n of at least 2",
      received: String(samples),
    });
  }
  makeRolloutCorrectionOptions(algorithm);
  const { bypass_mode, rollout_is, rollout_rs, ...more } = algorithm.rollout_correction;
  if (more.rollout_is_batch_normalize && rollout_is === null) {
    throw new ConfigError("has no weights to normalise", {
      code: "config/bad-value",
      subject: "algorithm.rollout_correction.rollout_is_batch_normalize",
      expected: "rollout_is: token or sequence",
      received: "rollout_is: null",
    });
  }
  const veto = more.rollout_token_veto_threshold;
  if (bypass_mode && (rollout_is !== null || rollout_rs !== null || veto !== null)) {
    throw new ConfigError("leaves nothing to correct: the loss compares with the sampler itself", {
      code: "config/bad-value",
      subject: "algorithm.rollout_correction.bypass_mode",
      expected: "rollout_is, rollout_rs and rollout_token_veto_threshold null",
      received: `rollout_is ${rollout_is}, rollout_rs ${rollout_rs}, rollout_token_veto_threshold ${veto}`,
      remedy: "choose one of the two",
    });
  }
}
