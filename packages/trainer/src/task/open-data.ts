import { ConfigError, type PolicyEngine } from "@cria/core";
import { userCacheFolder } from "@cria/core/internal";
import { resolveData } from "@cria/hub";
import { isAddress } from "@cria/hub/internal";
import {
  agentLoops,
  type DatasetClass,
  type DatasetRow,
  filterOverlongPrompts,
  loadDataset,
  type RowMap,
} from "@cria/rollout";
import { checkDatasetClass, checkProjector, checkSources, loadExport } from "@cria/rollout/internal";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import { importExport } from "@cria/tools/internal";
import type { Settings } from "../config/import/settings.js";
import type { DataOptions } from "../config/options/data.js";
import { resolvePath } from "../config/paths.js";
import { type Report, WorkReporter } from "../events.js";
import { makeImageAccess } from "../policy/describe-vision.js";
import type { Environment } from "./environment.js";

export interface OpenedRows {
  train: DatasetRow[];
  val: DatasetRow[];
}

export interface OpenDataOptions {
  /** Rows in memory, which replace those of the settings. */
  train?: readonly DatasetRow[];
  val?: readonly DatasetRow[];
  /** The config's section `data`, for a user's dataset class. */
  section: Readonly<Record<string, unknown>>;
}

/** Reads the rows that the settings name. @throws ConfigError or DataError naming file, row and column. */
export async function openData(
  { data, environment }: Pick<Settings, "data"> & { environment: Pick<Settings["environment"], "images"> },
  folder: string,
  { train, val, section }: OpenDataOptions,
): Promise<OpenedRows> {
  const datasetClass = await loadDatasetClass(data.datasetClass, folder);
  const map = await loadRowMap(data.map, folder);
  const load = async (files: readonly string[], maxSamples: number, sampleSeed: number | null) =>
    loadDataset(await resolveFiles(files, folder), {
      promptKey: data.promptKey,
      rewardFnKey: data.rewardFnKey,
      imageKey: data.imageKey,
      videoKey: data.videoKey,
      needToolsKwargs: data.needToolsKwargs,
      maxSamples,
      sampleSeed,
      datasetClass,
      map,
      config: section,
    });
  const rows = {
    train: train ? [...train] : await load(data.trainFiles, data.trainMaxSamples, data.shuffle ? data.seed : null),
    val: val ? [...val] : data.valFiles ? await load(data.valFiles, data.valMaxSamples, null) : [],
  };
  checkSources([...rows.train, ...rows.val], makeImageAccess(environment.images));
  return rows;
}

/**
 * Checks that the model takes images if rows have any. An agent that calls the policy itself may use them in another
 * way.
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

/** Files of rows; datasets of a hub are downloaded to the cache. @throws HubError */
export async function resolveFiles(files: readonly string[], folder: string): Promise<string[]> {
  const resolved = files.map((file) => (isAddress(file) ? resolveData(file) : [resolvePath(folder, file)]));
  return (await Promise.all(resolved)).flat();
}

/** Loads the user's function in `data.map`. @throws ConfigError when it cannot be loaded or is no function. */
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
  { path, name }: DataOptions["datasetClass"],
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
  /** Limits and tools of the run: they determine the length of prompts. */
  environment: Pick<Environment, "tools" | "images" | "maxPromptLength">;
  report?: Report;
  signal?: AbortSignal;
}

/** Drops rows whose prompts are too long, if the settings say so. */
export async function filterData(
  rows: OpenedRows,
  data: DataOptions,
  folder: string,
  { environment: { tools, images, maxPromptLength }, ...options }: FilterDataOptions,
): Promise<OpenedRows> {
  if (!data.filterOverlongPrompts) return rows;
  const cacheFolder = findPromptCache(data, folder);
  const filter = async (label: "train" | "val", given: readonly DatasetRow[]) => {
    if (given.length === 0) return [];
    const reporter = new WorkReporter(options.report, `filter ${label}`);
    const kept = await filterOverlongPrompts(given, maxPromptLength, {
      ...options,
      tools,
      images,
      templateKwargs: data.templateKwargs,
      allowControlTokens: data.allowControlTokens,
      cacheFolder,
      onProgress: (done) => reporter.update(done, given.length),
    });
    options.report?.({ type: "filtered", rows: label, kept: kept.length, of: given.length, maxPromptLength });
    reporter.end();
    return kept;
  };
  return { train: await filter("train", rows.train), val: await filter("val", rows.val) };
}

/** Folder of cached prompt lengths. */
export function findPromptCache({ cacheDir }: DataOptions, folder: string): string {
  if (cacheDir !== null) return resolvePath(folder, cacheDir);
  return userCacheFolder("prompt-lengths");
}
