import { stat } from "node:fs/promises";
import { parseDumpLine } from "@cria/records/internal";
import { getToolFormat, type ToolParser } from "@cria/tools";
import type { EnvironmentDetail } from "@cria/viewer/api";
import { isObject } from "../../runs/read-small-json.js";
import type { RunReader } from "../../runs/run-reader.js";
import { scanLines } from "../index/scan-lines.js";
import { ToolStatistics } from "./tool-statistics.js";

/** Dumps whose counts are kept: the most recently used ones. */
const MOST_KEPT = 5000;

/** Statistics of tools in the conversations of dumps: each dump is read once, and again after a change. */
export class Environments {
  private readonly kept = new Map<string, { stamp: string; statistics: ToolStatistics }>();

  /**
   * Statistics of the training's conversations of steps; without any, of all the run's conversations.
   * @throws the signal's reason
   */
  async describe(reader: RunReader, from: number, to: number, signal?: AbortSignal): Promise<EnvironmentDetail> {
    const training = reader.dumps.filter(({ kind }) => kind === "training");
    const dumps = training.length > 0 ? training : reader.dumps;
    const wanted = dumps.filter(({ step }) => step === null || (step >= from && step <= to));
    const parse = findParser(reader.config);
    const all = new ToolStatistics(parse);
    for (const { file } of wanted) all.merge(await this.count(file, parse, signal));
    return { steps: wanted.flatMap(({ step }) => step ?? []), ...all.describe() };
  }

  private async count(file: string, parse: ToolParser, signal?: AbortSignal): Promise<ToolStatistics> {
    const found = await stat(file).catch(() => null);
    const statistics = new ToolStatistics(parse);
    if (!found) return statistics;
    const stamp = `${found.size}:${found.mtimeMs}`;
    const known = this.kept.get(file);
    if (known?.stamp === stamp) return known.statistics;
    for await (const { bytes, length } of scanLines(file, 0, signal)) {
      if (bytes === null || length === 0) continue;
      try {
        statistics.add(parseDumpLine(JSON.parse(bytes.toString("utf8")), file));
      } catch {
        // No conversation, or a damaged one.
      }
    }
    this.kept.delete(file);
    this.kept.set(file, { stamp, statistics });
    if (this.kept.size > MOST_KEPT) this.kept.delete(this.kept.keys().next().value!);
    return statistics;
  }
}

/**
 * The built-in parser that the run's config names. Users' modules are not loaded: calls in their formats have no
 * arguments here.
 */
function findParser(config: Record<string, unknown> | null): ToolParser {
  const path = ["actor_rollout_ref", "rollout", "multi_turn", "format"];
  const format = path.reduce<unknown>((within, key) => (isObject(within) ? within[key] : undefined), config);
  try {
    return getToolFormat(String(format)).parse;
  } catch {
    return getToolFormat("hermes").parse;
  }
}
