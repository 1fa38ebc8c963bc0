import { advantageEstimators, composePolicyLoss, klEstimates, rewardStrategies } from "@cria/algorithms";
import { ConfigError } from "@cria/core";
import { getAgentLoop } from "@cria/rollout";
import { getToolParser, listToolParsers } from "@cria/tools";
import { makePolicyLossOptions } from "../train/policy-loss-options.js";
import type { TrainConfig } from "./train-config.js";

/**
 * What the schema cannot see: names in registries. Nothing is loaded yet, so a typo does not cost the time of loading a
 * model or of a first batch of rollouts.
 * @throws ConfigError for the first thing wrong.
 */
export function checkTrainConfig(config: TrainConfig): void {
  const { actor, rollout } = config.actor_rollout_ref;
  advantageEstimators.get(config.algorithm.adv_estimator);
  composePolicyLoss(makePolicyLossOptions(actor));
  klEstimates.get(actor.kl_loss_type);
  rewardStrategies.get(config.reward_model.aggregation.strategy);
  // A config's own loops are not registered yet.
  if (rollout.agent.agent_loop_config_path === null) getAgentLoop(rollout.agent.default_agent_loop);
  const format = rollout.multi_turn.format;
  if (!getToolParser(format)) {
    throw new ConfigError("is not a tool-call format", {
      code: "config/unknown-name",
      subject: "actor_rollout_ref.rollout.multi_turn.format",
      expected: listToolParsers().join(", "),
      received: format,
    });
  }
}
