import { homedir } from "node:os";
import { join } from "node:path";
import { ConfigError, type PolicyEngine } from "@cria/core";
import {
  checkDatasetClass,
  type DatasetClass,
  type DatasetRow,
  filterOverlongPrompts,
  loadDataset,
  loadExport,
} from "@cria/rollout";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import type { BaseTool } from "@cria/tools";
import { resolvePath } from "../config/load-config.js";
import type { TrainConfig } from "../config/train-config.js";
import { Progress } from "../terminal/progress.js";

export interface SessionRows {
  train: DatasetRow[];
  val: DatasetRow[];
}

/** Reads the rows that `data.*` names. @throws ConfigError or DataError naming file, row and column. */
export async function openData(data: TrainConfig["data"], folder: string): Promise<SessionRows> {
  const datasetClass = await loadDatasetClass(data.custom_cls, folder);
  const load = (files: readonly string[], maxSamples: number, sampleSeed: number | null) =>
    loadDataset(
      files.map((file) => resolvePath(folder, file)),
      {
        promptKey: data.prompt_key,
        rewardFnKey: data.reward_fn_key,
        imageKey: data.image_key,
        videoKey: data.video_key,
        needToolsKwargs: data.need_tools_kwargs,
        maxSamples,
        sampleSeed,
        datasetClass,
        config: data,
      },
    );
  return {
    train: await load(data.train_files, data.train_max_samples, data.shuffle ? data.seed : null),
    val: data.val_files ? await load(data.val_files, data.val_max_samples, null) : [],
  };
}

async function loadDatasetClass(
  { path, name }: TrainConfig["data"]["custom_cls"],
  folder: string,
): Promise<DatasetClass | undefined> {
  if (path === null) return undefined;
  if (name === null)
    throw new ConfigError("is missing", {
      code: "config/bad-value",
      subject: "data.custom_cls.name",
      expected: `the name of a class that ${path} exports`,
      received: "null",
    });
  const file = resolvePath(folder, path);
  return checkDatasetClass(await loadExport(file, name, "data.custom_cls"), `data.custom_cls ${file}#${name}`);
}

export interface FilterDataOptions {
  engine: PolicyEngine;
  tokenizer: DeltaTokenizer;
  tools: ReadonlyMap<string, BaseTool>;
  silent?: boolean;
  signal?: AbortSignal;
}

/** Leaves out rows whose prompts are too long, if the config says so, with a progress bar. */
export async function filterData(
  rows: SessionRows,
  data: TrainConfig["data"],
  folder: string,
  options: FilterDataOptions,
): Promise<SessionRows> {
  if (!data.filter_overlong_prompts) return rows;
  const cacheFolder = data.cache_dir === null ? findCacheFolder() : resolvePath(folder, data.cache_dir);
  const filter = async (label: string, given: readonly DatasetRow[]) => {
    if (given.length === 0) return [];
    const progress = new Progress({ label: `filter ${label}`, total: given.length, silent: options.silent });
    const kept = await filterOverlongPrompts(given, data.max_prompt_length, {
      ...options,
      templateKwargs: data.apply_chat_template_kwargs,
      allowControlTokens: data.allow_control_tokens,
      cacheFolder,
      onProgress: (done) => done < given.length && progress.update(done),
    });
    progress.update(given.length, `${kept.length} prompts of at most ${data.max_prompt_length} tokens`);
    progress.finish();
    return kept;
  };
  return { train: await filter("train", rows.train), val: await filter("val", rows.val) };
}

function findCacheFolder(): string {
  return join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "cria", "prompt-lengths");
}
