import { readKey, removeKey, type SetAside, writeKey } from "../raw-config.js";

const model = "actor_rollout_ref.model";

/**
 * Keys that must keep their value: vision tower and connecting layers are in the projector's file, which is not
 * trained.
 */
export const frozenKeys = [
  "actor_rollout_ref.actor.freeze_vision_tower",
  `${model}.lora.freeze_vision_model`,
  `${model}.lora.freeze_vision_projection`,
  "critic.model.lora.freeze_vision_model",
  "critic.model.lora.freeze_vision_projection",
] as const;

/** Removes keys of a vision tower from the config of a model without one; verl's own default trains it. */
export function dropKeysOfNoTower(raw: Record<string, unknown>): SetAside[] {
  if (typeof readKey(raw, `${model}.mmproj`) === "string") return [];
  return frozenKeys
    .filter((key) => removeKey(raw, key).found)
    .map((key) => ({ key, reason: `there is no vision tower without ${model}.mmproj` }));
}

/** Default side of a patch in pixels (`data.image_patch_size`). */
const defaultPatch = 14;
/** Patches per side of the area that one token covers, in processors with such limits (Qwen's). */
const patchesASide = 2;

/**
 * Converts pixel limits of Hugging Face's image processors to token limits of llama.cpp; returns notes on the
 * converted keys.
 */
export function translatePixelLimits(raw: Record<string, unknown>): SetAside[] {
  const patch = readKey(raw, "data.image_patch_size") ?? defaultPatch;
  const notes: SetAside[] = [];
  for (const limit of ["min", "max"] as const) {
    const key = `data.mm_processor_kwargs.${limit}_pixels`;
    const pixels = readKey(raw, key);
    const own = `${model}.image_${limit}_tokens`;
    if (typeof pixels !== "number" || typeof patch !== "number" || readKey(raw, own) !== undefined) continue;
    const side = patch * patchesASide;
    const tokens = Math.max(1, Math.floor(pixels / side ** 2));
    writeKey(raw, own, tokens);
    notes.push({ key, reason: `it is taken as ${own}: ${tokens}, tokens of ${side} x ${side} pixels` });
  }
  return notes;
}
