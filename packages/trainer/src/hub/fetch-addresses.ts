import { type FetchOptions, type HubProgress, resolveData, resolveModel } from "@cria/hub";
import { resolveProjector } from "@cria/hub/internal";
import { listUnusedKeys } from "../config/check-train-paths.js";
import { type AddressKind, listAddresses } from "../config/paths.js";
import type { TrainConfig } from "../config/train-config.js";
import { type Report, WorkReporter } from "../events.js";

export interface FetchAddressesOptions {
  report?: Report;
  signal?: AbortSignal;
}

/**
 * Downloads the files that a config names by addresses and that are not cached, so that later opening finds them in
 * the cache. `except`: keys that a command does not need.
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
  addresses: readonly { kind: AddressKind; address: string }[],
  options: FetchAddressesOptions,
): Promise<void> {
  const fetchers = { model: fetchModel, projector: fetchProjector, rows: fetchData };
  for (const { kind, address } of addresses) await fetchers[kind](address, options);
}

/**
 * Resolves a model's address to its file, which is downloaded if necessary; a path stays unchanged. @throws HubError
 */
export function fetchModel(path: string, options: FetchAddressesOptions = {}): Promise<string> {
  return withReports(options, (given) => resolveModel(path, given));
}

/** The same for a projector. @throws HubError */
export function fetchProjector(path: string, options: FetchAddressesOptions = {}): Promise<string> {
  return withReports(options, (given) => resolveProjector(path, given));
}

/** Resolves a dataset's split to its files, which are downloaded if necessary. @throws HubError */
export function fetchData(address: string, options: FetchAddressesOptions = {}): Promise<string[]> {
  return withReports(options, (given) => resolveData(address, given));
}

async function withReports<T>(
  { report, signal }: FetchAddressesOptions,
  work: (options: FetchOptions) => Promise<T>,
): Promise<T> {
  const reporter = new WorkReporter(report, "download", "bytes");
  const result = await work({
    signal,
    onProgress: ({ label, done, total }: HubProgress) => reporter.update(done, total, label),
  });
  reporter.end();
  return result;
}
