import { ConfigError } from "@cria/core";
import { countLeaves } from "@cria/rollout/internal";
import { countSamples } from "../config/derived-values.js";
import type { TrainConfig } from "../config/train-config.js";
import type { TaskDefinition } from "../task/task-definition.js";
import type { Registries } from "../user-code/registries.js";

const TREE = "actor_rollout_ref.rollout.tree.expansions";
const ESTIMATOR = "algorithm.adv_estimator";

/**
 * The key by which conversations of a config go on from turns of others, and its value: trees (`rollout.tree`), or an
 * estimator that measures turns. Null: none does.
 */
export function findBranching(
  { algorithm, actor_rollout_ref: { rollout } }: TrainConfig,
  { advantageEstimators }: Pick<Registries, "advantageEstimators">,
): { key: string; value: string; otherwise: string } | null {
  const { expansions } = rollout.tree;
  const { adv_estimator: estimator } = algorithm;
  if (expansions > 0) return { key: TREE, value: String(expansions), otherwise: "0" };
  const isMeasured = advantageEstimators.get(estimator).needs?.includes("turnValues");
  return isMeasured ? { key: ESTIMATOR, value: estimator, otherwise: "an estimator without turnValues" } : null;
}

/**
 * Checks that conversations of a config can go on from turns of others.
 * @throws ConfigError that names the key which does not go with it.
 */
export function checkBranching(
  config: TrainConfig,
  registries: Pick<Registries, "agentLoops" | "advantageEstimators">,
  task?: TaskDefinition<object>,
): void {
  const { algorithm, distillation, actor_rollout_ref } = config;
  const { rollout } = actor_rollout_ref;
  const { tree, multi_turn, agent } = rollout;
  const refuse = (problem: string, subject: string, expected: string, received: string) => {
    throw new ConfigError(problem, { code: "config/bad-value", subject, expected, received });
  };
  if (tree.expansions === 0 && algorithm.adv_estimator === "tree_grpo")
    refuse("compares the conversations of a tree", `${ESTIMATOR} tree_grpo`, `${TREE} of at least 1`, "0");
  const branching = findBranching(config, registries);
  if (!branching) return;
  const refuseBranching = (problem: string, other: string, received: string) =>
    refuse(problem, branching.key, `${branching.otherwise}, or ${other}`, `${branching.value}, and ${received}`);
  const needs = registries.advantageEstimators.get(algorithm.adv_estimator).needs;
  if (tree.expansions > 0 && needs?.includes("turnValues"))
    refuseBranching("measures no values of turns", `another ${ESTIMATOR}`, algorithm.adv_estimator);
  if (needs?.includes("turnValues") && algorithm.use_kl_in_reward)
    refuseBranching(
      "measures rewards without the KL",
      "algorithm.use_kl_in_reward false; actor.use_kl_loss has the KL in the loss",
      "true",
    );
  if (!multi_turn.enable)
    refuseBranching("branches at the ends of turns", "actor_rollout_ref.rollout.multi_turn.enable true", "false");
  if (multi_turn.use_inference_chat_template)
    refuseBranching(
      "branches at the ends of turns, which a later rendering may change",
      "actor_rollout_ref.rollout.multi_turn.use_inference_chat_template false",
      "true",
    );
  const samplers = "needs one policy that samples all turns";
  if (rollout.partial_rollout !== "carry_on")
    refuseBranching(samplers, "actor_rollout_ref.rollout.partial_rollout carry_on", rollout.partial_rollout);
  if (distillation.enabled && distillation.guided.share > 0)
    refuseBranching(samplers, "distillation.guided.share 0", String(distillation.guided.share));
  const only = "branches the conversations of the built-in loop alone";
  const loops = "actor_rollout_ref.rollout.agent";
  if (task?.agent !== undefined) refuseBranching(only, "a task without an agent", "an agent");
  if (agent.agent_loop_config_path !== null)
    refuseBranching(only, `${loops}.agent_loop_config_path null`, agent.agent_loop_config_path);
  else if (registries.agentLoops.get(agent.default_agent_loop).recorded !== "answers")
    refuseBranching(only, `${loops}.default_agent_loop tool_agent`, agent.default_agent_loop);
  const samples = countSamples(rollout);
  if (tree.expansions > 0 && samples % countLeaves(tree) !== 0)
    refuse(
      "is no number of whole trees",
      "actor_rollout_ref.rollout.n",
      `a multiple of ${countLeaves(tree)}: each tree has 1 + rounds x expansions conversations (actor_rollout_ref.rollout.tree)`,
      String(samples),
    );
}
