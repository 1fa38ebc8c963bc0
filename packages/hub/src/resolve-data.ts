import { findSplits, type Splits } from "./find-splits.js";
import type { HubFile, Listing } from "./hub-cache.js";
import { type FetchOptions, HubRepository } from "./hub-repository.js";
import { parseAddress } from "./parse-address.js";

const FORM = "hf:<owner>/<set>[/<config>][/<split>][@<revision>], or hf:<owner>/<set>/<file>[@<revision>]";

/** Revision in which the hub stores Parquet files that it converted from other formats. */
const CONVERTED = "refs/convert/parquet";

/**
 * The files of a dataset's split on this machine, in order: Parquet, JSONL or JSON, downloaded if they are not cached.
 * @param address such as `hf:openai/gsm8k/main/train`. The name of a single config, or a single split, may be omitted.
 * @throws HubError with the reason: an address of another form, a set, config or split that does not exist (with those
 *   that do), no permission, no network, nothing cached while offline, a full disk, a damaged download.
 */
export async function resolveData(address: string, options: FetchOptions = {}): Promise<string[]> {
  const { repository: name, parts, revision } = parseAddress(address, FORM);
  let repository = new HubRepository("dataset", name, revision ?? "main", options);
  let listing = await repository.list();
  let splits = findSplits(listing);
  if (splits.size === 0 && revision === null) {
    const converted = new HubRepository("dataset", name, CONVERTED, options);
    const found = await converted.list().catch(() => null);
    if (found) [repository, listing, splits] = [converted, found, findSplits(found)];
  }
  return repository.fetch(listing, chooseFiles(repository, listing, splits, parts));
}

function chooseFiles(repository: HubRepository, { files }: Listing, splits: Splits, parts: string[]): HubFile[] {
  const path = parts.join("/");
  const file = files.find((one) => one.path === path);
  if (file) return [file];
  const refuse = (summary: string, expected: string, remedy: string) =>
    repository.fail(summary, { expected, received: path || "nothing", remedy });
  if (splits.size === 0) {
    const kinds = new Set(files.map((one) => one.path.split(".").at(-1)));
    throw repository.fail("has no files that can be read", {
      expected: "Parquet, JSONL or JSON files",
      received: `files that end with ${[...kinds].slice(0, 12).join(", ") || "nothing"}`,
      remedy: "convert them, and use the local file",
    });
  }
  const all = [...splits].flatMap(([config, named]) => [...named.keys()].map((split) => `${config}/${split}`));
  const example = `name it: hf:${repository.name}/${all[0]}`;
  const named = parts[0] === undefined ? undefined : splits.get(parts[0]);
  const chosen = named ?? splits.get("default") ?? (splits.size === 1 ? [...splits.values()][0]! : undefined);
  const rest = named ? parts.slice(1) : parts;
  if (!chosen) {
    const summary = parts.length > 0 ? `has no config ${parts[0]}` : "has several configs";
    throw refuse(summary, `one of ${[...splits.keys()].join(", ")}`, example);
  }
  if (rest.length === 0 && chosen.size === 1) return [...chosen.values()][0]!;
  const split = rest.length === 1 ? chosen.get(rest[0]!) : undefined;
  if (split) return split;
  const summary =
    rest.length === 0 ? "has several splits" : `has no ${named ? "split" : "config or split"} ${rest.join("/")}`;
  throw refuse(summary, `one of ${all.join(", ")}`, example);
}
