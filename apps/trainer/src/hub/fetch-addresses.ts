import { type FetchOptions, type HubProgress, resolveData, resolveModel } from "@cria/hub";
import { listUnusedKeys } from "../config/check-train-paths.js";
import { listAddresses } from "../config/paths.js";
import type { TrainConfig } from "../config/train-config.js";
import { formatBytes } from "../doctor/available-memory.js";
import { Progress } from "../terminal/progress.js";

export interface FetchAddressesOptions {
  silent?: boolean;
  signal?: AbortSignal;
}

/**
 * Downloads what a config names by addresses of a hub and is not here yet, with a progress bar; what opens it afterwards finds it
 * in the cache. `except`: keys that a command does without.
 * @throws HubError
 */
export async function fetchTrainAddresses(
  config: TrainConfig,
  options: FetchAddressesOptions,
  except: readonly string[] = [],
): Promise<void> {
  await fetchAddresses(listAddresses(config, [...except, ...listUnusedKeys(config)]), options);
}

export async function fetchAddresses(
  addresses: readonly { kind: "model" | "rows"; address: string }[],
  options: FetchAddressesOptions,
): Promise<void> {
  for (const { kind, address } of addresses)
    await (kind === "model" ? fetchModel(address, options) : fetchData(address, options));
}

/** The file of a model's address, downloaded with a progress bar if need be; a path as it is. @throws HubError */
export function fetchModel(path: string, options: FetchAddressesOptions = {}): Promise<string> {
  return withProgress(options, (given) => resolveModel(path, given));
}

/** The files of a dataset's split, downloaded with a progress bar if need be. @throws HubError */
export function fetchData(address: string, options: FetchAddressesOptions = {}): Promise<string[]> {
  return withProgress(options, (given) => resolveData(address, given));
}

async function withProgress<T>(
  { silent, signal }: FetchAddressesOptions,
  work: (options: FetchOptions) => Promise<T>,
): Promise<T> {
  let progress: Progress | undefined;
  const started = performance.now();
  let first: number | undefined;
  const onProgress = ({ label, done, total }: HubProgress) => {
    // What an earlier attempt brought says nothing about how fast this one is.
    first ??= done;
    progress ??= new Progress({ label: "download", total, start: first, silent, format: formatBytes });
    const rate = (done - first) / Math.max(0.001, (performance.now() - started) / 1000);
    progress.update(done, `${formatBytes(rate)}/s · ${label}`, total);
  };
  const result = await work({ signal, onProgress });
  progress?.finish();
  return result;
}
