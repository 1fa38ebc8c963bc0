import { linearLayers, listMissingTargets, type TargetModules } from "../config/sections/target-modules.js";
import { readModelHeader } from "./read-model-header.js";

/**
 * Explains which targets of a new adapter a model does not have, while it has others: the adapter would be smaller than
 * its config says. Loading reports a list of which the model has none.
 * @param path the model's file.
 * @returns null if it has all of them, or the file cannot be read, which loading reports.
 */
export async function findMissingTargets(
  path: string,
  targets: TargetModules,
): Promise<{ found: string; remedy: string } | null> {
  if (targets === "all-linear") return null;
  const layers = await readLayers(path);
  if (layers === null) return null;
  const missing = listMissingTargets(targets, layers);
  if (missing.length === 0 || missing.length === targets.length) return null;
  return {
    found: `names layers that ${path} does not have, and that are therefore not trained: ${missing.join(", ")}`,
    remedy: `leave ${missing.length === 1 ? "it" : "them"} out, or name others of its layers: ${[...layers].sort().join(", ")}`,
  };
}

/** Names of the layers that an adapter can change. */
async function readLayers(path: string): Promise<Set<string> | null> {
  const header = await readModelHeader(path);
  if (header === null) return null;
  const names = header.tensors.map(({ name }) => /^(?:blk\.\d+\.)?(.+)\.weight$/.exec(name)?.[1] ?? "");
  return new Set(names.filter((name) => linearLayers.has(name)));
}
