import { join, resolve } from "node:path";
import { ConfigError, hasFailed, type Trajectory } from "@cria/core";
import { parseFilter } from "@cria/records";
import type { DatasetRow } from "@cria/rollout";
import { countConversations } from "@cria/rollout/internal";
import { openTraining, rollOut, type Training, trainConfigSchema } from "@cria/trainer";
import { checkTrainPaths, fetchTrainAddresses } from "@cria/trainer/internal";
import { defineCommand } from "citty";
import { type RolloutSummary, summarizeRollouts } from "../rollout/summarize-rollouts.js";
import { type RolloutForm, rolloutForms, type WrittenRollouts, writeRollouts } from "../rollout/write-rollouts.js";
import { colors as pc } from "../terminal/colors.js";
import { formatCount, formatSeconds, Progress } from "../terminal/progress.js";
import { showEvents } from "../terminal/show-events.js";
import { readConfig } from "./read-config.js";
import { commonArgs, runCommand } from "./run-command.js";

const args = {
  config: { type: "positional", description: "YAML config, the same as for cria train", required: true },
  overrides: {
    type: "positional",
    description: "Any number of key.path=value, for example actor_rollout_ref.rollout.n=1",
    required: false,
  },
  out: {
    type: "string",
    description: "File to write (default: trajectories.jsonl or messages.jsonl in <local_dir>/<project>/<experiment>)",
  },
  output: { type: "string", description: "The same as --out" },
  keep: {
    type: "string",
    description: "Filter for the conversations to write: 'reward>=1 && turns<6' (cria show --help lists the fields)",
  },
  as: {
    type: "string",
    description: "Form of the file: trajectories (default; cria show reads them), or messages (cria sft reads them)",
  },
  rows: { type: "string", description: "Number of rows, from the first (default: all)" },
  val: { type: "boolean", description: "Rows of data.val_files, sampled with val_kwargs" },
  ...commonArgs,
} as const;

export const rolloutCommand = defineCommand({
  meta: { name: "rollout", description: "Run only rollouts: trajectories as JSONL, and a summary" },
  args,
  run: ({ args: given }) =>
    runCommand(given, async (signal) => {
      const loaded = readConfig(trainConfigSchema, given.config, given._.slice(1).map(String));
      const { values: config, folder } = loaded;
      checkTrainPaths(loaded);
      const { default_local_dir, project_name, experiment_name } = config.trainer;
      const form = readForm(given.as);
      const file = resolve(
        given.out ?? given.output ?? join(default_local_dir, project_name, experiment_name, `${form}.jsonl`),
      );
      const limit = readLimit(given.rows);
      const keep = given.keep === undefined ? null : parseFilter(given.keep, "--keep");
      const report = showEvents({ silent: given.json });
      await fetchTrainAddresses(config, { report, signal });
      const training = await openTraining(config, folder, { signal, report });
      try {
        const rows = pickRows(training, { limit, val: given.val === true });
        const { trajectories, seconds } = await showRollouts(training, rows, {
          val: given.val === true,
          silent: given.json === true,
        });
        const summary = summarizeRollouts(trajectories, seconds);
        if (!given.json) print(summary);
        const written = await writeRollouts(training, trajectories, { rows, keep, form, file });
        if (given.json) console.log(JSON.stringify({ ...summary, ...written }));
        else printWritten(written);
        // Conversations that had ended are written; the exit code still reports the interruption.
        signal.throwIfAborted();
      } finally {
        await training.dispose();
      }
    }),
});

/** @throws ConfigError when there are none. */
function pickRows(training: Training, { limit, val }: { limit: number; val: boolean }): DatasetRow[] {
  const rows = (val ? training.valRows : training.trainRows).slice(0, limit);
  if (rows.length > 0) return rows;
  throw new ConfigError("has no rows", {
    code: "config/no-rows",
    subject: val ? "data.val_files" : "data.train_files",
    expected: "at least one row",
    received: val ? "no held-out rows in the config" : "none",
    remedy: val ? "set data.val_files, or leave --val out" : "set data.train_files",
  });
}

/** Rolls out with a progress line. After an interruption it returns the conversations that had ended. */
async function showRollouts(
  training: Training,
  rows: readonly DatasetRow[],
  { val, silent }: { val: boolean; silent: boolean },
): Promise<{ trajectories: Trajectory[]; seconds: number }> {
  const sampling = val ? training.settings.validation : training.settings.sampling;
  const progress = new Progress({ label: "rollout", total: countConversations(rows, sampling.n), silent });
  const started = performance.now();
  const ended: Trajectory[] = [];
  const judged: number[] = [];
  try {
    const running = rollOut(training.policy, training.environment, rows, {
      ...sampling,
      seed: training.config.actor_rollout_ref.rollout.seed,
      step: 0,
      signal: training.signal,
      onTrajectory: (trajectory) => {
        ended.push(trajectory);
        if (!hasFailed(trajectory)) judged.push(trajectory.reward);
        const mean = judged.reduce((sum, reward) => sum + reward, 0) / judged.length;
        progress.update(ended.length, judged.length > 0 ? `reward ${mean.toFixed(3)}` : "");
      },
    });
    const trajectories = await running.trajectories;
    progress.finish();
    return { trajectories, seconds: (performance.now() - started) / 1000 };
  } catch (error) {
    if (!training.signal?.aborted || ended.length === 0) throw error;
    progress.finish();
    ended.sort((a, b) => a.rowIndex - b.rowIndex || a.sampleIndex - b.sampleIndex);
    return { trajectories: ended, seconds: (performance.now() - started) / 1000 };
  }
}

function readLimit(rows: string | undefined): number {
  if (rows === undefined) return Number.POSITIVE_INFINITY;
  const value = Number(rows);
  if (Number.isInteger(value) && value >= 1) return value;
  throw new ConfigError("has a wrong value", {
    code: "config/bad-argument",
    subject: "--rows",
    expected: "a whole number of at least 1",
    received: rows,
  });
}

function readForm(form: string | undefined): RolloutForm {
  if (form === undefined) return "trajectories";
  if ((rolloutForms as readonly string[]).includes(form)) return form as RolloutForm;
  throw new ConfigError("is not a form of conversations", {
    code: "config/bad-argument",
    subject: "--as",
    expected: rolloutForms.join(" or "),
    received: form,
  });
}

function print(summary: RolloutSummary): void {
  const { reward, finish_reasons, metrics } = summary;
  const counts = Object.entries(finish_reasons).map(([reason, count]) => `${reason} ${count}`);
  const rewards = reward
    ? `mean ${pc.bold(reward.mean.toFixed(3))}, min ${reward.min.toFixed(3)}, max ${reward.max.toFixed(3)}`
    : "none: every conversation failed";
  const lines: [string, string][] = [
    ["reward", rewards],
    ...Object.entries(summary.by_data_source).map(([source, entry]): [string, string] => [
      `  ${source}`,
      `mean ${entry.mean.toFixed(3)} over ${entry.count}`,
    ]),
    ["turns", summary.turns ? `mean ${summary.turns.mean.toFixed(1)}, max ${summary.turns.max}` : "none"],
    ["ended by", counts.join(", ")],
    ["tools", `${metrics.tool_calls ?? 0} calls, ${metrics.tool_errors ?? 0} errors`],
    ["time", `${formatSeconds(summary.seconds)}, ${formatCount(summary.tokens_per_second)} tokens/s`],
  ];
  if (summary.failed > 0) {
    lines.splice(1, 0, ["failed", pc.red(`${summary.failed}; first: ${summary.first_error?.replace(/\s+/g, " ")}`)]);
  }
  console.log(`${pc.bold(`${summary.trajectories} trajectories`)} of ${summary.rows} rows`);
  for (const [name, text] of lines) console.log(`  ${name.padEnd(12)} ${text}`);
}

function printWritten({ file, form, written, unusable, inexact }: WrittenRollouts): void {
  const line = (name: string, text: string) => console.log(`  ${name.padEnd(12)} ${text}`);
  line("written", `${written} as ${form}: ${file}`);
  if (unusable > 0) line("left out", `${unusable} that failed, or whose last turn was cut`);
  if (inexact > 0)
    line(
      "note",
      `${inexact} have other tokens or masks when cria sft reads them (docs/sft.md of cria: Examples from the policy itself)`,
    );
  if (form === "messages") line("next", `cria sft <config> data.train_files=${file}`);
  else line("next", `cria show ${file} --worst 3`);
}
