import { existsSync } from "node:fs";
import { join } from "node:path";
import { readDump } from "@cria/records";
import { isMapping, readJson, readKey } from "../config/raw-config.js";
import { readMetricLines } from "../step-metrics.js";
import { findProblems } from "./find-problems.js";
import type { Finding } from "./finding.js";
import { PROBLEMS, ProblemLog } from "./problem-log.js";
import { readBeginning } from "./read-beginning.js";

/** Minimum number of steps for judging a run by its folder: it may be over. */
const FEWEST = 3;

/** Implements `diagnoseRun` of when-called.ts. */
export async function diagnoseRun(folder: string): Promise<Finding[]> {
  const metrics = await readMetricLines(join(folder, "metrics.jsonl"));
  if (metrics.length === 0) return [];
  const config = await readConfig(folder);
  const dumps = findDumpFolder(folder, config);
  const hasDump = (name: string) => existsSync(join(dumps, `${name}.jsonl`));
  const hasTools =
    metrics.some((step) => (step["tool_call_counts/max"] ?? 0) > 0) ||
    (await offersTools(join(dumps, `${metrics.at(-1)!["training/global_step"]}.jsonl`)));
  const origin = await readJson(join(folder, "run.json"));
  const configFolder = readKey(origin, "config_folder");
  const beginning = await readBeginning(config, typeof configFolder === "string" ? configFolder : folder);
  const now = findProblems(metrics, { hasTools, config, beginning, fewest: FEWEST });
  const log = new ProblemLog(await readJson(join(folder, PROBLEMS)), metrics.at(-1)!["training/global_step"]);
  return log.list(now).map((finding) => ({
    ...finding,
    evidence: finding.evidence.filter(({ dump }) => hasDump(dump)),
  }));
}

async function readConfig(folder: string): Promise<Record<string, unknown> | null> {
  const config = await readJson(join(folder, "config.json"));
  return isMapping(config) ? config : null;
}

/** The config may have put the conversations elsewhere. */
function findDumpFolder(folder: string, config: Record<string, unknown> | null): string {
  const trainer = isMapping(config?.trainer) ? config.trainer : {};
  return typeof trainer.rollout_data_dir === "string" ? trainer.rollout_data_dir : join(folder, "rollouts");
}

/** True if the first conversation of a dump has tools. */
async function offersTools(file: string): Promise<boolean> {
  try {
    for await (const { tools } of readDump(file)) return tools.length > 0;
  } catch {
    // Missing or damaged: unknown.
  }
  return false;
}
