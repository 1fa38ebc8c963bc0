import type { ProgressEvent, Report, RunEvent, StepEvent, ValidatedEvent, WorkName } from "@cria/trainer";
import { drawSparkline } from "../demo/draw-chart.js";
import { colors as pc } from "./colors.js";
import { describeProblem } from "./describe-problem.js";
import { formatBytes } from "./format-bytes.js";
import { formatCount, Progress } from "./progress.js";
import { findWidth } from "./wrap-text.js";

export interface ShowEventsOptions {
  /**
   * Draws no bars. Warnings, notices and problems are still written to stderr: they must not go unseen, and stdout
   * stays clean.
   */
  silent?: boolean;
  /** True if the run's conversations are written, which `cria show` needs. Default: true. */
  dumped?: boolean;
}

/** Turns what a run reports into bars and text on stderr. */
export function showEvents({ silent = false, dumped = true }: ShowEventsOptions = {}): Report {
  const bars = new Map<WorkName, Bar>();
  const say = (text: string) => {
    for (const { progress } of bars.values()) progress.clear();
    process.stderr.write(`${text}\n`);
  };
  const end = (work: WorkName, note?: string) => {
    bars.get(work)?.progress.finish(note);
    bars.delete(work);
  };
  const onProgress = (event: ProgressEvent) => {
    if (event.isEnd) return end(event.work);
    const bar = bars.get(event.work) ?? startBar(event, silent);
    bars.set(event.work, bar);
    updateBar(bar, event);
  };
  /** Success of the steps so far. */
  const curve: number[] = [];
  /** Sampling of the last validation: its success is not comparable with the steps', which are always sampled. */
  let sampling = "";
  return (event: RunEvent) => {
    switch (event.type) {
      case "progress":
        return onProgress(event);
      case "step":
        return bars.get(event.work)?.progress.update(event.step, describeStep(event, curve, sampling), event.total);
      case "validated":
        sampling = event.temperature === 0 ? " greedy" : "";
        return end("validate", describeValidation(event, sampling));
      case "filtered":
        return end(`filter ${event.rows}`, `${event.kept} prompts of at most ${event.maxPromptLength} tokens`);
      case "warning":
        return say(`warning: ${event.text}`);
      case "notice":
        return say(event.text);
      case "problem":
        return say(describeProblem(event.problem, dumped ? event.runPath : null, findWidth(process.stderr)));
    }
  };
}

interface Bar {
  progress: Progress;
  /** Work done before, and its start: an earlier attempt does not tell this one's speed. */
  first: number;
  started: number;
}

function startBar({ work, done, total, unit }: ProgressEvent, silent: boolean): Bar {
  const format = unit === "bytes" ? formatBytes : undefined;
  return {
    progress: new Progress({ label: work, total, start: done, silent, format }),
    first: done,
    started: performance.now(),
  };
}

function updateBar({ progress, first, started }: Bar, { work, done, total, unit, name }: ProgressEvent): void {
  // The steps draw a training's bar.
  if (work === "train" || work === "sft") return;
  const rate = (done - first) / Math.max(0.001, (performance.now() - started) / 1000);
  const note = unit === "bytes" ? [`${formatBytes(rate)}/s`, ...(name ? [name] : [])].join(" · ") : "";
  progress.update(done, note, total);
}

/** Steps of the curve that are drawn on a terminal. */
const CURVE = 12;

/**
 * @param curve success of the steps so far, to which this step's is added.
 * @param sampling of the last validation.
 */
function describeStep({ work, metrics, heldOut }: StepEvent, curve: number[], sampling: string): string {
  const show = (name: string, digits: number) => metrics[name]?.toFixed(digits) ?? "none";
  const speed = `${formatCount(metrics["perf/throughput"]!)} tok/s`;
  if (work === "sft") return `loss ${show("train/loss", 4)} (average ${show("train/loss_average", 4)}) · ${speed}`;
  const last = heldOut === null ? "" : ` (held out${sampling} ${heldOut.toFixed(2)})`;
  const success = metrics["reward/score/mean"];
  if (success !== undefined) curve.push(success);
  const calls = metrics["tool_call_counts/mean"] ?? 0;
  const drawn = process.stderr.isTTY && curve.length > 1 ? `${drawSparkline(curve.slice(-CURVE))} ` : "";
  const facts = [
    // Equal numbers are shown once, because terminals are narrow.
    ...(metrics["critic/rewards/mean"] === success ? [] : [`reward ${show("critic/rewards/mean", 3)}`]),
    `success${last && sampling ? " sampled" : ""} ${show("reward/score/mean", 2)}${last}`,
    ...(calls > 0 ? [`tools ${(100 * (1 - (metrics["agent_loop/tool_error_rate"] ?? 0))).toFixed(0)} %`] : []),
    speed,
    `grad ${(metrics["actor/grad_norm"] ?? 0).toFixed(2)}`,
  ];
  return drawn + facts.join(" · ");
}

function describeValidation({ success, loss, failed, conversations }: ValidatedEvent, sampling: string): string {
  if (loss !== null) return `held-out loss ${loss.toFixed(4)}`;
  const left = failed > 0 ? `, ${failed} of ${conversations} conversations failed` : "";
  return `${pc.green(`success${sampling} ${success?.toFixed(3) ?? "unknown"}`)}${pc.red(left)}`;
}
