import { isMapping, readKey, removeKey, type SetAside, writeKey } from "../raw-config.js";

const actor = "actor_rollout_ref.actor";

/** Factors of the number of prompts in a step of a streamed training, with verl's own defaults. */
const factors = [
  [`${actor}.ppo_mini_batch_size`, null],
  ["async_training.require_batches", 1],
  ["async_training.trigger_parameter_sync_step", 4],
] as const;

/** Keys of verl's fully asynchronous trainer for the length of training and for validation. */
const lengths: Record<string, string> = {
  "rollout.total_epochs": "trainer.total_epochs",
  "rollout.test_freq": "trainer.test_freq",
};

/** True if a config streams prompts: verl's fully asynchronous trainer does not read train_batch_size. */
export function isStreamed(raw: Record<string, unknown>): boolean {
  return isMapping(raw.async_training) || readKey(raw, "data.train_batch_size") === 0;
}

/** Keys that determine the batch size of a streamed training. */
export function listStreamedFactors(): string[] {
  return factors.map(([key]) => key);
}

/** Keys that are read only for a streamed training, and their meaning here. */
export function describeStreamedKeys(): Record<string, string> {
  const size = "Prompts of a step: ppo_mini_batch_size x require_batches x trigger_parameter_sync_step.";
  return {
    ...Object.fromEntries(factors.slice(1).map(([key]) => [key, size])),
    ...Object.fromEntries(Object.entries(lengths).map(([from, to]) => [from, `Another name of ${to}.`])),
    "rollout.total_rollout_steps": "Prompts of the whole training; trainer.total_training_steps are made of them.",
    "async_training.staleness_threshold":
      "trainer.v1.colocate_async.num_warmup_batches, rounded up; above 0 trainer.v1.trainer_mode is colocate_async.",
    "async_training.partial_rollout":
      "true, with a lag, is actor_rollout_ref.rollout.partial_rollout switch: by turn, where verl switches by token.",
    "async_training.use_rollout_log_probs": "Another name of algorithm.rollout_correction.bypass_mode.",
    "async_training.compute_prox_log_prob": "true is algorithm.rollout_correction.bypass_mode false.",
  };
}

/** Information beside the config. */
export interface StreamedOptions {
  /** Default of ppo_mini_batch_size; default: Cria's. */
  miniBatch?: number;
  /** Keys that the reader must still fill in. */
  open?: readonly string[];
}

/**
 * Converts a config of verl's fully asynchronous trainer to one whose steps alternate sampling and training. A step
 * has the prompts of `trigger_parameter_sync_step` local updates with `require_batches` x `ppo_mini_batch_size`
 * each, which is what verl trains on between two weight synchronisations, and as many updates as verl makes of them.
 * If one of these numbers must still be filled in, so must the batch size.
 * @returns notes on the converted keys.
 */
export function translateStreamed(raw: Record<string, unknown>, options: StreamedOptions = {}): SetAside[] {
  if (!isStreamed(raw)) return [];
  const { miniBatch = 8, open = [] } = options;
  const notes: SetAside[] = [];
  const values = factors.map(([key, otherwise]) => Number(readKey(raw, key) ?? otherwise ?? miniBatch));
  const [mini, batches, updates] = values as [number, number, number];
  const isOpen = factors.some(([key]) => open.includes(key));
  const size = mini * batches * updates;
  if (!isOpen && (!Number.isInteger(size) || size < 1)) return notes;
  for (const [key] of factors.slice(1)) removeKey(raw, key);
  const { value: given } = removeKey(raw, "data.train_batch_size");
  if (!isOpen) {
    writeKey(raw, "data.train_batch_size", size);
    notes.push({
      key: "data.train_batch_size",
      reason:
        `${given ?? "a streamed batch"} is taken as ${size}, the prompts between two synchronisations of weights: ` +
        `ppo_mini_batch_size ${mini} x require_batches ${batches} x trigger_parameter_sync_step ${updates}; ` +
        `a step makes ${batches * updates} updates of them, as verl does`,
    });
  }
  notes.push(
    ...translateLengths(raw, isOpen ? null : size),
    ...translateWarmup(raw, isOpen ? 1 : updates),
    ...translateOldLogprobs(raw),
    ...translateStaleness(raw),
    ...translatePartial(raw),
  );
  return notes;
}

function translateLengths(raw: Record<string, unknown>, size: number | null): SetAside[] {
  const notes: SetAside[] = [];
  for (const [from, to] of Object.entries(lengths)) {
    const { found, value } = removeKey(raw, from);
    if (!found || value === null) continue;
    const present = readKey(raw, to);
    if (present !== undefined && present !== null && present !== value)
      notes.push({ key: to, reason: `${from} says it: ${JSON.stringify(value)}` });
    writeKey(raw, to, value);
  }
  const { value: total } = removeKey(raw, "rollout.total_rollout_steps");
  if (typeof total !== "number") return notes;
  if (size === null) {
    const reason = `${total} prompts are so many divided by data.train_batch_size steps (trainer.total_training_steps)`;
    return [...notes, { key: "rollout.total_rollout_steps", reason }];
  }
  const steps = Math.max(1, Math.floor(total / size));
  writeKey(raw, "trainer.total_training_steps", steps);
  notes.push({
    key: "rollout.total_rollout_steps",
    reason: `${total} prompts are ${steps} steps of ${size} (trainer.total_training_steps); verl also ends with total_epochs`,
  });
  return notes;
}

/** verl's learning rate advances with each local update, of which a step has several. */
function translateWarmup(raw: Record<string, unknown>, updates: number): SetAside[] {
  const key = `${actor}.optim.lr_warmup_steps`;
  const steps = readKey(raw, key);
  if (typeof steps !== "number" || steps <= 0 || updates <= 1) return [];
  const taken = Math.ceil(steps / updates);
  writeKey(raw, key, taken);
  return [{ key, reason: `${steps} local updates are ${taken} steps of ${updates}` }];
}

/** Converts the number of batches that may be sampled ahead to a lag in whole steps. */
function translateStaleness(raw: Record<string, unknown>): SetAside[] {
  const from = "async_training.staleness_threshold";
  const { value } = removeKey(raw, from);
  if (typeof value !== "number" || !(value > 0) || readKey(raw, "trainer.v1.trainer_mode") !== undefined) return [];
  const lag = Math.ceil(value);
  const to = "trainer.v1.colocate_async.num_warmup_batches";
  writeKey(raw, "trainer.v1.trainer_mode", "colocate_async");
  writeKey(raw, to, lag);
  return [{ key: from, reason: `${value} of a batch sampled ahead is a lag of ${lag} (${to})` }];
}

/** verl aborts conversations at an update, and goes on with the new weights. Without a lag none is unfinished then. */
function translatePartial(raw: Record<string, unknown>): SetAside[] {
  const from = "async_training.partial_rollout";
  const { found, value } = removeKey(raw, from);
  if (!found) return [];
  if (value !== true) return [{ key: from, reason: "the version that began a conversation samples all of it" }];
  const mode = readKey(raw, "trainer.v1.trainer_mode") ?? "sync";
  if (mode === "sync")
    return [{ key: from, reason: "without a lag (async_training.staleness_threshold) no conversation is unfinished" }];
  const to = "actor_rollout_ref.rollout.partial_rollout";
  writeKey(raw, to, "switch");
  return [{ key: from, reason: `the newest policy goes on at the next turn of a conversation (${to}=switch)` }];
}

/** Converts verl 0.7's keys for bypass_mode. */
function translateOldLogprobs(raw: Record<string, unknown>): SetAside[] {
  const key = "algorithm.rollout_correction.bypass_mode";
  const { value: ofRollout } = removeKey(raw, "async_training.use_rollout_log_probs");
  const { value: recomputed } = removeKey(raw, "async_training.compute_prox_log_prob");
  if (typeof recomputed !== "boolean" && typeof ofRollout !== "boolean") return [];
  const bypass = recomputed === true ? false : ofRollout !== false;
  const present = readKey(raw, key);
  if (recomputed !== true && typeof present === "boolean") return [];
  writeKey(raw, key, bypass);
  return present === undefined || present === bypass
    ? []
    : [{ key, reason: `async_training.compute_prox_log_prob says it: ${bypass}` }];
}
