import { dirname, join } from "node:path";
import { resolvePath } from "../config/paths.js";
import { readKey } from "../config/raw-config.js";
import { readMetricLines } from "../step-metrics.js";
import { average } from "./average.js";

/** The supervised fine-tuning that a run's policy comes from. */
export interface Beginning {
  /** Its run folder. */
  path: string;
  steps: number;
  /** At its end, on held-out conversations if there were any: nats a token. */
  loss: number;
}

/** Of so many last steps the loss is the mean. */
const LAST = 5;

/**
 * Whether a run began with what `cria sft` trained: adapter or model lie in that run's folder. null where they do not.
 * @param configFolder where relative paths of the config start.
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
