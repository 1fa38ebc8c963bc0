import { isMapping, readKey, removeKey, type SetAside, writeKey } from "../raw-config.js";

const rollout = "actor_rollout_ref.rollout";

/** Keys that other frameworks set to null where Cria has a default. */
const nullIsDefault = [
  "data.seed",
  "critic.ppo_mini_batch_size",
  "custom_reward_function.name",
  "reward_model.enable",
  "reward_model.reward_manager",
  "reward_model.model.path",
  "trainer.default_local_dir",
];

/** Keys whose default is the value of another key. */
const follows: Record<string, string> = {
  [`${rollout}.prompt_length`]: "data.max_prompt_length",
  [`${rollout}.response_length`]: "data.max_response_length",
};

/** Reward managers that naive covers. */
const asNaive: Record<string, string> = {
  prime: "judges each conversation as soon as it ends, several at once",
  gdpo: "keeps all numbers that the reward function returns",
};

/** Maximum number of sequences in the engine's KV cache. */
const MOST_SEQUENCES = 256;

/** Keys for which null means the same as leaving them out. */
export function listNullableKeys(): string[] {
  return nullIsDefault;
}

/** Keys whose values may exceed Cria's limit; the limit then applies. */
export function listUnboundedKeys(): string[] {
  return [`${rollout}.max_num_seqs`];
}

/** Converts former single-key switches to a section's `enable`. Runs before other names are replaced. */
export function expandSwitches(raw: Record<string, unknown>): void {
  const key = `${rollout}.multi_turn`;
  const enable = readKey(raw, key);
  if (typeof enable === "boolean") writeKey(raw, key, { enable });
}

const sampler = "trainer.v1.sampler";
const refillKey = `${sampler}.sync_refill_failed_groups`;
const replaySampling = "algorithm.replay.sampling";
const replayKwargs = "algorithm.replay.sampling_kwargs";

/** Keys that `moveValues` replaces, with their meaning here. */
export function describeMovedKeys(): Record<string, string> {
  return {
    [refillKey]: `true is ${rollout}.on_failure refill.`,
    [`${sampler}.custom_sampler.path`]: `A JavaScript or TypeScript module is ${replaySampling} "path#name". Python is refused.`,
    [`${sampler}.custom_sampler.name`]: "The export of that module.",
    [`${sampler}.sampler_kwargs`]: `Beside such a module: ${replayKwargs}.`,
  };
}

/**
 * Moves values to the keys that have them in Cria; runs before sections are dropped. Returns those without effect
 * because Cria's own key is set, too.
 */
export function moveValues(raw: Record<string, unknown>): SetAside[] {
  const onFailure = `${rollout}.on_failure`;
  const { value: refills } = removeKey(raw, refillKey);
  if (refills === true && readKey(raw, onFailure) === undefined) writeKey(raw, onFailure, "refill");
  const reference = "actor_rollout_ref.ref.model.path";
  if (readKey(raw, reference) === readKey(raw, "actor_rollout_ref.model.path")) removeKey(raw, reference);
  const correction = "algorithm.rollout_correction";
  // Without weights, there is nothing to cut off.
  if (
    readKey(raw, `${correction}.rollout_is_threshold`) === null &&
    (readKey(raw, `${correction}.rollout_is`) ?? null) === null
  )
    removeKey(raw, `${correction}.rollout_is_threshold`);
  return moveSampler(raw);
}

/**
 * Converts a sampler of verl's buffer: it chooses the finished groups that a step learns from. The groups that a step
 * sampled itself are those of the schedule, so here it chooses among those of earlier steps. Other modules than
 * JavaScript's and TypeScript's are left where they are, and refused.
 */
function moveSampler(raw: Record<string, unknown>): SetAside[] {
  const custom = `${sampler}.custom_sampler`;
  const [path, name] = [readKey(raw, `${custom}.path`), readKey(raw, `${custom}.name`)];
  if (typeof path !== "string" || typeof name !== "string" || !/\.[cm]?[jt]sx?$/.test(path)) return [];
  removeKey(raw, custom);
  const { value: kwargs } = removeKey(raw, `${sampler}.sampler_kwargs`);
  const present = readKey(raw, replaySampling);
  if (present !== undefined) return [{ key: custom, reason: `${replaySampling} says it: ${JSON.stringify(present)}` }];
  const isPath = /^(\.{1,2}|~)?\//.test(path);
  writeKey(raw, replaySampling, `${isPath ? "" : "./"}${path}#${name}`);
  if (isMapping(kwargs) && readKey(raw, replayKwargs) === undefined) writeKey(raw, replayKwargs, kwargs);
  return [];
}

/** Converts values of other frameworks to Cria's; returns those without their full effect. */
export function translateValues(raw: Record<string, unknown>): SetAside[] {
  const notes: SetAside[] = [];
  for (const key of nullIsDefault) if (readKey(raw, key) === null) removeKey(raw, key);
  for (const [key, source] of Object.entries(follows)) {
    const value = readKey(raw, source);
    if (readKey(raw, key) === undefined && value !== undefined) writeKey(raw, key, value);
  }
  const sequences = readKey(raw, `${rollout}.max_num_seqs`);
  if (typeof sequences === "number" && Number.isInteger(sequences) && sequences > MOST_SEQUENCES) {
    writeKey(raw, `${rollout}.max_num_seqs`, MOST_SEQUENCES);
    notes.push({
      key: `${rollout}.max_num_seqs`,
      reason: `${sequences} is taken as ${MOST_SEQUENCES}, the most that one KV cache holds; other conversations wait`,
    });
  }
  const manager = readKey(raw, "reward_model.reward_manager");
  const reason = typeof manager === "string" && Object.hasOwn(asNaive, manager) ? asNaive[manager] : undefined;
  if (reason) {
    writeKey(raw, "reward_model.reward_manager", "naive");
    notes.push({ key: "reward_model.reward_manager", reason: `${manager} is taken as naive, which ${reason}` });
  }
  return notes;
}
