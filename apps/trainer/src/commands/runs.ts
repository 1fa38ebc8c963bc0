import { ConfigError } from "@cria/core";
import { checkTrainPaths } from "@cria/trainer/internal";
import type { RunSummary } from "@cria/viewer/api";
import { defineCommand } from "citty";
import { compareRuns, drawComparison } from "../manage/compare-runs.js";
import { drawRuns } from "../manage/draw-runs.js";
import { loadRunConfig } from "../manage/load-run-config.js";
import { askToRemove, removeRun } from "../manage/remove-run.js";
import { findRuns } from "../runs/find-runs.js";
import { readRun } from "../runs/run-reader.js";
import { findWidth } from "../terminal/wrap-text.js";
import { commonArgs, runCommand } from "./run-command.js";
import { trainByCommand } from "./train-by-command.js";

const args = {
  words: {
    type: "positional",
    description: "Folders to search (default: runs); or compare A B, resume RUN, remove RUN",
    required: false,
  },
  yes: { type: "boolean", description: "With remove: do not ask" },
  ...commonArgs,
} as const;

/** Text below the options in the help. */
export const runsNotes = `EXAMPLES

  cria runs                                         runs below ./runs, the newest first
  cria runs compare runs/p/a runs/p/b               metrics side by side, and the differences of their configs
  cria runs resume runs/p/a                         resumes from its newest checkpoint, with its config
  cria runs remove runs/p/a                         deletes the folder after a confirmation (or --yes)
`;

const actions: Record<string, (paths: string[], given: Given, signal: AbortSignal) => Promise<void>> = {
  async compare(paths, { json }) {
    const comparison = await compareRuns(takePaths("compare", paths, 2) as [string, string]);
    if (json) console.log(JSON.stringify({ ...comparison, runs: comparison.runs.map(describeRun) }));
    else console.log(drawComparison(comparison, findWidth()).join("\n"));
  },
  async resume(paths, { json }, signal) {
    const loaded = await loadRunConfig(takePaths("resume", paths, 1)[0]!);
    checkTrainPaths(loaded);
    await trainByCommand(loaded, { json, signal, words: null });
  },
  async remove(paths, { json, yes }) {
    const [path] = takePaths("remove", paths, 1) as [string];
    const isTerminal = process.stdin.isTTY === true && process.stderr.isTTY === true && !json;
    const confirm = yes ? async () => true : isTerminal ? () => askToRemove(path) : null;
    const removed = await removeRun(path, confirm);
    if (json) console.log(JSON.stringify({ path, removed }));
    else console.log(removed ? `removed ${path}` : `${path} stays`);
  },
};

interface Given {
  json?: boolean;
  yes?: boolean;
}

export const runsCommand = defineCommand({
  meta: { name: "runs", description: "Runs: list, compare, resume, remove" },
  args,
  run: ({ args: given }) =>
    runCommand(given, async (signal) => {
      const words = given._.map(String);
      const action = Object.hasOwn(actions, words[0] ?? "") ? actions[words[0]!] : undefined;
      if (action) return action(words.slice(1), given, signal);
      await list(words.length > 0 ? words : undefined, given.json === true);
    }),
});

async function list(folders: string[] | undefined, json: boolean): Promise<void> {
  const runs = await Promise.all((await findRuns(folders)).map((run) => readRun(run)));
  runs.sort((a, b) => (b.updatedAt ?? 0) - (a.updatedAt ?? 0));
  if (json) console.log(JSON.stringify(runs.map(describeRun)));
  else if (runs.length === 0) console.log(`no runs in ${(folders ?? ["runs"]).join(", ")}: cria train makes them`);
  else console.log(drawRuns(runs, findWidth()).join("\n"));
}

/** The JSON of a run, with keys as in files. */
function describeRun({ startedAt, updatedAt, ...same }: RunSummary): object {
  return { ...same, started_at: startedAt, updated_at: updatedAt };
}

function takePaths(action: string, paths: readonly string[], count: number): readonly string[] {
  if (paths.length === count) return paths;
  throw new ConfigError("needs other arguments", {
    code: "config/bad-argument",
    subject: `cria runs ${action}`,
    expected: count === 1 ? "a run folder" : `${count} run folders`,
    received: paths.length === 0 ? "none" : paths.join(" "),
  });
}
