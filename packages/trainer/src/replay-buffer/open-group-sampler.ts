import { type GroupSampler, groupSamplers } from "@cria/rollout";
import { makeGroupSampler } from "@cria/rollout/internal";
import { importExport } from "@cria/tools/internal";
import type { ReplayOptions } from "../config/options/algorithm.js";
import type { Registries } from "../user-code/registries.js";

/** A sampler of groups, without any history. */
export interface OpenedGroupSampler {
  /** Name in errors and checkpoints: the config key with its value. */
  name: string;
  sampler: GroupSampler;
}

/**
 * Opens the sampler that chooses the replayed groups.
 * @param seed `rollout.seed`. @throws ConfigError when the name is unknown, or it does not sample groups.
 */
export function openGroupSampler(
  { sampling, samplingKwargs }: Pick<ReplayOptions, "sampling" | "samplingKwargs">,
  seed: number,
  samplers: Registries["groupSamplers"] = groupSamplers,
): OpenedGroupSampler {
  // Without the path: a run that continues in a moved folder has the same sampler.
  const name = `algorithm.replay.sampling ${sampling.slice(sampling.lastIndexOf("#") + 1)}`;
  const options = { seed, kwargs: structuredClone(samplingKwargs) };
  return { name, sampler: makeGroupSampler(samplers.get(sampling), options, name) };
}

/**
 * Registers the sampler of groups that the options name as "module#export", and opens it once: what is wrong with it
 * must not cost the time of loading a model.
 * @param replay null: no groups are replayed. @param folder base of relative paths.
 * @throws ConfigError when it cannot be loaded, the name is unknown, or it does not sample groups.
 */
export async function loadGroupSampler(
  replay: ReplayOptions | null,
  { folder, seed }: { folder: string; seed: number },
  { groupSamplers: samplers }: Pick<Registries, "groupSamplers">,
): Promise<void> {
  if (!replay) return;
  const { sampling } = replay;
  if (sampling.includes("#"))
    samplers.register(sampling, (await importExport(sampling, folder, "algorithm.replay.sampling")) as never);
  openGroupSampler(replay, seed, samplers);
}
