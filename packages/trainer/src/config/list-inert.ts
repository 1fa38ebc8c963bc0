import { policyLosses } from "@cria/algorithms";
import { policyLossParameters } from "@cria/algorithms/schemas";
import { isTaughtAlone } from "./derived-values.js";
import { trainKeys } from "./import/config-keys.js";
import type { ConfigWarning } from "./list-warnings.js";
import { actorSection } from "./sections/actor.js";
import { criticSection } from "./sections/critic.js";
import type { TrainConfig } from "./train-config.js";

const ACTOR = "actor_rollout_ref.actor";

/** Keys of the loss that only affect ratios other than 1; a loss may have further ones. */
const CLIPS = ["clip_ratio", "clip_ratio_low", "clip_ratio_high", "clip_ratio_c"];

/**
 * Lists settings that differ from their defaults but have no effect: the order of rows with a sampler, which picks
 * them; a KL term of the task's loss, where a teacher replaces that; and clips in steps of one update. The first optimizer step of a training step
 * starts from the policy that sampled, so every ratio is 1 and nothing is clipped. If it is the only one, clip
 * settings have no effect.
 */
export function listInert({ actor_rollout_ref, algorithm, critic, data, distillation }: TrainConfig): ConfigWarning[] {
  const { actor } = actor_rollout_ref;
  const defaults = actorSection.parse({});
  const { loss_mode } = actor.policy_loss;
  const inert: ConfigWarning[] = [];
  const { sampler, train_max_samples } = data;
  // With train_max_samples, shuffle also decides which rows there are.
  if (!data.shuffle && train_max_samples < 0 && (sampler.class_name !== null || sampler.class_path !== null))
    inert.push({
      key: "data.shuffle",
      found: "has no effect: data.sampler picks the rows of each step",
      remedy: "leave it out, or the sampler",
    });
  if (isTaughtAlone({ distillation }) && actor.use_kl_loss)
    inert.push({
      key: `${ACTOR}.use_kl_loss`,
      found: "has no effect: with use_task_rewards false only the teacher's term is trained on",
      remedy: "leave it out, or set distillation.distillation_loss.use_task_rewards to true",
    });
  const isOne = (given: { ppo_epochs: number | null; ppo_mini_batch_size: number | null }) =>
    (given.ppo_epochs ?? actor.ppo_epochs) === 1 &&
    data.train_batch_size <= (given.ppo_mini_batch_size ?? actor.ppo_mini_batch_size);
  const add = (section: string, keys: readonly string[], what: string) => {
    if (keys.length === 0) return;
    inert.push({
      key: `${section}.${keys[0]}`,
      found: `${keys.length > 1 ? `with ${keys.slice(1).join(", ")} ` : ""}has no effect: a step has one update, at whose beginning every ${what}`,
      remedy: `leave ${keys.length > 1 ? "them" : "it"} out, or take several updates a step: ppo_epochs above 1, or a ppo_mini_batch_size below train_batch_size ${data.train_batch_size}`,
    });
  };
  // With bypass_mode, ratios compare with the sampler, whose probabilities differ. The behaviour of a user's loss is
  // unknown.
  if (isOne(actor) && !algorithm.rollout_correction.bypass_mode && policyLosses.names().includes(loss_mode)) {
    const { ofRatios = [] } = policyLosses.get(loss_mode);
    const further = ofRatios.map((option) => trainKeys.find(policyLossParameters.shape[option])!);
    const keys = [...CLIPS, ...further.map((key) => key.slice(ACTOR.length + 1))];
    const changed = keys.filter((key) => read(actor, key) !== read(defaults, key));
    add(ACTOR, changed, "ratio is 1");
  }
  const { cliprange_value } = criticSection.parse({});
  if (algorithm.adv_estimator === "gae" && isOne(critic) && critic.cliprange_value !== cliprange_value)
    add("critic", ["cliprange_value"], "value is the old one");
  return inert;
}

function read(section: unknown, path: string): unknown {
  return path.split(".").reduce((node, part) => (node as Record<string, unknown> | undefined)?.[part], section);
}
