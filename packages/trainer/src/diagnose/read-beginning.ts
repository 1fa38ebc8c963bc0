import { dirname, join } from "node:path";
import { resolvePath } from "../config/paths.js";
import { readKey } from "../config/raw-config.js";
import { readMetricLines } from "../step-metrics.js";
import { average } from "./average.js";

/** The supervised fine-tuning from which a run's policy started. */
export interface Beginning {
  /** Its run folder. */
  path: string;
  steps: number;
  /** Loss at its end in nats per token, on held-out conversations if there were any. */
  loss: number;
}

/** Number of last steps over which the loss is averaged. */
const LAST = 5;

/**
 * Finds the run of `cria sft` whose adapter or model a run started from: the one whose folder contains the file.
 * null if there is none.
 * @param configFolder base of the config's relative paths.
 */
export async function readBeginning(config: unknown, configFolder: string): Promise<Beginning | null> {
  const model = "actor_rollout_ref.model";
  const file = readKey(config, `${model}.lora_adapter_path`) ?? readKey(config, `${model}.path`);
  if (typeof file !== "string") return null;
  const path = dirname(resolvePath(configFolder, file));
  const lines = await readMetricLines(join(path, "metrics.jsonl"));
  const losses = lines.flatMap((line) => line["train/loss"] ?? []);
  const heldOut = lines.flatMap((line) => line["val/loss"] ?? []).at(-1);
  const loss = heldOut ?? average(losses.slice(-LAST));
  if (loss === null || losses.length === 0) return null;
  return { path, steps: lines.at(-1)!["training/global_step"]!, loss };
}
