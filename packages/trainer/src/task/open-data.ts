import { ConfigError, type PolicyEngine } from "@cria/core";
import { userCacheFolder } from "@cria/core/internal";
import { resolveData } from "@cria/hub";
import { isAddress } from "@cria/hub/internal";
import {
  agentLoops,
  checkDatasetClass,
  checkProjector,
  checkSources,
  type DatasetClass,
  type DatasetRow,
  filterOverlongPrompts,
  loadDataset,
  loadExport,
  type RowMap,
} from "@cria/rollout";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import type { BaseTool } from "@cria/tools";
import { importExport } from "@cria/tools/internal";
import { resolvePath } from "../config/paths.js";
import type { TrainConfig } from "../config/train-config.js";
import { type Report, WorkReporter } from "../events.js";
import { makeImageAccess } from "../policy/describe-vision.js";
import type { Environment } from "./environment.js";

export interface SessionRows {
  train: DatasetRow[];
  val: DatasetRow[];
}

/**
 * Reads the rows that `data.*` names.
 * @param given rows in memory, in place of those.
 * @throws ConfigError or DataError naming file, row and column.
 */
export async function openData(
  data: TrainConfig["data"],
  folder: string,
  given: { train?: readonly DatasetRow[]; val?: readonly DatasetRow[] } = {},
): Promise<SessionRows> {
  const datasetClass = await loadDatasetClass(data.custom_cls, folder);
  const map = await loadRowMap(data.map, folder);
  const load = async (files: readonly string[], maxSamples: number, sampleSeed: number | null) =>
    loadDataset(await resolveFiles(files, folder), {
      promptKey: data.prompt_key,
      rewardFnKey: data.reward_fn_key,
      imageKey: data.image_key,
      videoKey: data.video_key,
      needToolsKwargs: data.need_tools_kwargs,
      maxSamples,
      sampleSeed,
      datasetClass,
      map,
      config: data,
    });
  const { train, val } = given;
  const rows = {
    train: train ? [...train] : await load(data.train_files, data.train_max_samples, data.shuffle ? data.seed : null),
    val: val ? [...val] : data.val_files ? await load(data.val_files, data.val_max_samples, null) : [],
  };
  checkSources([...rows.train, ...rows.val], makeImageAccess(data));
  return rows;
}

/**
 * Checks that the model sees the images of rows. An agent that calls the policy by itself may have other uses for them.
 * @throws ConfigError
 */
export function checkSeen(
  rows: readonly DatasetRow[],
  { agentLoops: loops = agentLoops, defaultAgentLoop }: Pick<Environment, "agentLoops" | "defaultAgentLoop">,
  engine: Pick<PolicyEngine, "images">,
): void {
  const asked = rows.filter(({ agentName }) => loops.find(agentName ?? defaultAgentLoop)?.traits.prompt !== false);
  checkProjector(asked, engine);
}

/** Files of rows, those of a hub's datasets in the cache. @throws HubError */
export async function resolveFiles(files: readonly string[], folder: string): Promise<string[]> {
  const resolved = files.map((file) => (isAddress(file) ? resolveData(file) : [resolvePath(folder, file)]));
  return (await Promise.all(resolved)).flat();
}

/** The user's function behind `data.map`. @throws ConfigError when it cannot be loaded or is none. */
export async function loadRowMap(name: string | null, folder: string): Promise<RowMap | undefined> {
  if (name === null) return undefined;
  const map = await importExport(name, folder, "data.map");
  if (typeof map === "function") return map as RowMap;
  throw new ConfigError("is not a function", {
    code: "config/bad-value",
    subject: `data.map "${name}"`,
    expected: "a function from a record to a row",
    received: typeof map,
  });
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
  report?: Report;
  signal?: AbortSignal;
}

/** Leaves out rows whose prompts are too long, if the config says so. */
export async function filterData(
  rows: SessionRows,
  data: TrainConfig["data"],
  folder: string,
  options: FilterDataOptions,
): Promise<SessionRows> {
  if (!data.filter_overlong_prompts) return rows;
  const cacheFolder = findPromptCache(data, folder);
  const filter = async (label: "train" | "val", given: readonly DatasetRow[]) => {
    if (given.length === 0) return [];
    const reporter = new WorkReporter(options.report, `filter ${label}`);
    const kept = await filterOverlongPrompts(given, data.max_prompt_length, {
      ...options,
      templateKwargs: data.apply_chat_template_kwargs,
      allowControlTokens: data.allow_control_tokens,
      images: makeImageAccess(data),
      cacheFolder,
      onProgress: (done) => reporter.update(done, given.length),
    });
    const maxPromptLength = data.max_prompt_length;
    options.report?.({ type: "filtered", rows: label, kept: kept.length, of: given.length, maxPromptLength });
    reporter.end();
    return kept;
  };
  return { train: await filter("train", rows.train), val: await filter("val", rows.val) };
}

/** Folder of cached prompt lengths. */
export function findPromptCache({ cache_dir }: TrainConfig["data"], folder: string): string {
  if (cache_dir !== null) return resolvePath(folder, cache_dir);
  return userCacheFolder("prompt-lengths");
}
