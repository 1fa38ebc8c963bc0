import picomatch from "picomatch";
import type { HubFile, Listing } from "./hub-cache.js";

/** Files by config and split, in order. */
export type Splits = Map<string, Map<string, HubFile[]>>;

const READABLE = /\.(parquet|jsonl|json)$/i;

/** Words for splits in file names, by the hub's rules. */
const SPLIT_WORDS: Record<string, string[]> = {
  train: ["train", "training"],
  validation: ["validation", "valid", "val", "dev"],
  test: ["test", "testing", "eval", "evaluation"],
};

/** A config of a dataset's card. */
interface CardConfig {
  config_name?: unknown;
  data_files?: unknown;
  data_dir?: unknown;
}

/** The splits of a dataset: from its card, else from the names of files and folders. */
export function findSplits({ files, configs }: Listing): Splits {
  const readable = files.filter(({ path }) => READABLE.test(path)).sort((a, b) => (a.path < b.path ? -1 : 1));
  const splits: Splits = new Map();
  const add = (config: string, split: string, file: HubFile) => {
    if (!splits.has(config)) splits.set(config, new Map());
    const named = splits.get(config)!;
    const list = named.get(split) ?? [];
    if (!list.includes(file)) named.set(split, [...list, file]);
  };
  for (const config of Array.isArray(configs) ? (configs as CardConfig[]) : []) {
    const name = typeof config?.config_name === "string" ? config.config_name : "default";
    for (const { split, pattern } of readPatterns(config)) {
      const matches = picomatch(pattern);
      for (const file of readable) if (matches(file.path)) add(name, split ?? guessSplit(file.path), file);
    }
  }
  if (splits.size > 0) return splits;
  for (const file of readable) {
    // Settings stored with the data.
    if (!file.path.includes("/") && /^(dataset_infos?|dataset_dict|state|.*config.*)\.json$/i.test(file.path)) continue;
    add(guessConfig(file.path), guessSplit(file.path), file);
  }
  return splits;
}

/** Patterns of a config, each with its split; null: determined by the file's name. */
function readPatterns({ data_files, data_dir }: CardConfig): { split: string | null; pattern: string }[] {
  const prefix = typeof data_dir === "string" ? `${data_dir.replace(/\/+$/, "")}/` : "";
  if (data_files === undefined || data_files === null) return prefix ? [{ split: null, pattern: `${prefix}**` }] : [];
  return [data_files].flat().flatMap((entry) => {
    const { split, path } = (typeof entry === "string" ? { split: "train", path: entry } : (entry ?? {})) as {
      split?: unknown;
      path?: unknown;
    };
    return [path]
      .flat()
      .flatMap((pattern) =>
        typeof pattern === "string"
          ? [{ split: typeof split === "string" ? split : "train", pattern: `${prefix}${pattern}` }]
          : [],
      );
  });
}

/**
 * `train-00000-of-00002.parquet`, `data/gsm8k_test.jsonl`, `main/train/0000.parquet`; without a word for a split:
 * train.
 */
function guessSplit(path: string): string {
  for (const part of path.replace(READABLE, "").split("/").reverse()) {
    const name = part.replace(/-\d{5}-of-\d{5}(-[0-9a-f]+)?$/, "");
    const words = name.toLowerCase().split(/[^a-z]+/);
    for (const [split, known] of Object.entries(SPLIT_WORDS))
      if (words.some((word) => known.includes(word))) return split;
    // The hub's own files have the split's name before the number of the part.
    if (name !== part) return name;
  }
  return "train";
}

/** The first folder, unless it contains all data, or names a split. */
function guessConfig(path: string): string {
  const [first, ...rest] = path.split("/");
  const isSplit = Object.values(SPLIT_WORDS).some((words) => words.includes(first!.toLowerCase()));
  return rest.length === 0 || first === "data" || isSplit ? "default" : first!;
}
