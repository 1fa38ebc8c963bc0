import { readContextSize } from "../config/derived-values.js";
import type { ConfigWarning } from "../config/list-warnings.js";
import { resolvePath } from "../config/paths.js";
import type { TrainConfig } from "../config/train-config.js";
import { readModelHeader } from "../hub/read-model-header.js";

/**
 * Length of conversations compared with the context that a model was trained with. Beyond that context the model's text
 * degrades.
 */
export interface ContextUse {
  who: string;
  /** Number of tokens of the longest conversation, and the config values that determine it. */
  length: number;
  parts: string;
  /** Context that the model was trained with; 0: its file does not say. */
  trained: number;
  /** The config key that shortens conversations. */
  key: string;
}

/** Lists the contexts of the policy, the critic and reward models whose files are on this machine and readable. */
export async function listContexts(config: TrainConfig, folder: string): Promise<ContextUse[]> {
  const { actor_rollout_ref, algorithm, critic, data, reward_model } = config;
  const { rollout, model } = actor_rollout_ref;
  const length = readContextSize(config);
  const parts =
    rollout.max_model_len === null
      ? `prompt_length ${rollout.prompt_length} + response_length ${rollout.response_length}`
      : `max_model_len ${length}; prompts of ${data.max_prompt_length}, responses of ${Math.min(rollout.response_length, data.max_response_length)}`;
  const key = `actor_rollout_ref.rollout.${rollout.max_model_len === null ? "response_length" : "max_model_len"}`;
  const uses = [{ who: "the model", path: model.path as string | null, length, parts, key }];
  if (algorithm.adv_estimator === "gae") uses.push({ who: "the critic", path: critic.model.path, length, parts, key });
  for (const [i, { path, max_model_len }] of (reward_model.enable ? reward_model.model : []).entries()) {
    const judgeKey = `reward_model.model[${i}].max_model_len`;
    uses.push({ who: `reward model ${i}`, path, length: max_model_len, parts: "max_model_len", key: judgeKey });
  }
  const read = uses.map(async ({ path, ...use }) => {
    const trained = path === null ? null : await readTrainedContext(resolvePath(folder, path));
    return trained === null ? [] : [{ ...use, trained }];
  });
  return (await Promise.all(read)).flat();
}

/** Makes warnings for conversations longer than the trained context. */
export function listContextWarnings(uses: readonly ContextUse[]): ConfigWarning[] {
  return uses
    .filter(({ trained, length }) => trained > 0 && length > trained)
    .map((use) => ({
      key: use.key,
      found: describeContext(use),
      remedy: `lower ${use.key}, so that they are ${use.trained} at most`,
    }));
}

export function describeContext({ who, length, parts, trained }: ContextUse): string {
  return `conversations of up to ${length} tokens (${parts}), and ${who} was trained with ${trained}`;
}

/** Returns null if the file cannot be read; loading the model reports that. */
async function readTrainedContext(path: string): Promise<number | null> {
  const header = await readModelHeader(path);
  if (header === null) return null;
  const { metadata } = header;
  const value = metadata.get(`${String(metadata.get("general.architecture")?.value)}.context_length`)?.value;
  return typeof value === "number" || typeof value === "bigint" ? Number(value) : 0;
}
