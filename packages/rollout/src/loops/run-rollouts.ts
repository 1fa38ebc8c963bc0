import { setMaxListeners } from "node:events";
import { ConfigError, DataError, type PolicyEngine, type Trajectory } from "@cria/core";
import type { UnjudgedTrajectory } from "@cria/episodes";
import { resolveToolFormat } from "@cria/tools/internal";
import { freezeData } from "../copy-data.js";
import { checkProjector, checkSources } from "../data/check-images.js";
import type { DatasetRow } from "../data/dataset-row.js";
import { countConversations, isSampleCount, MOST_SAMPLES, samplesOf } from "../data/row-samples.js";
import { makeRewardManager, RewardQueue } from "../rewards/index.js";
import { checkBranches } from "./check-branches.js";
import { checkRowHasReward } from "./check-row-has-reward.js";
import { selectInteraction } from "./episode-interaction.js";
import { RolloutGroup, settleAll } from "./rollout-group.js";
import { findLoop, type RolloutOptions } from "./rollout-options.js";
import { Semaphore } from "./semaphore.js";
import { watchEventLoop } from "./watch-event-loop.js";

/** Conversations that have all ended; judges may still work. */
export interface EndedConversations {
  /** Ordered by row, then sample. Their judges may still be running. */
  conversations: UnjudgedTrajectory[];
  /** Resolves to the trajectories with their rewards, once all are judged. @throws errors that end the run. */
  finish: () => Promise<Trajectory[]>;
}

/**
 * Runs the conversations of all rows concurrently: the row's own number, else `n`. Results are ordered by (row,
 * sample), whatever finished first. A failed conversation becomes a trajectory with an `error`, or is treated as
 * `onFailure` says. Errors of the config, the data or the engine are thrown once every conversation has ended, so that
 * nothing continues in the background.
 */
export async function runRollouts(
  engine: PolicyEngine,
  rows: readonly DatasetRow[],
  options: RolloutOptions,
): Promise<Trajectory[]> {
  return (await startRollouts(engine, rows, options)).finish();
}

/**
 * `runRollouts` in two parts: resolves when the conversations have ended, while judges still run. With `onFailure:
 * "refill"` all are judged by then, because an unjudged conversation is sampled again.
 */
export async function startRollouts(
  engine: PolicyEngine,
  rows: readonly DatasetRow[],
  options: RolloutOptions,
): Promise<EndedConversations> {
  resolveToolFormat(options.multiTurn.format);
  for (const row of rows) checkRow(row, options);
  checkSources(rows, options.images);
  // An agent that calls the policy itself may use images in another way.
  checkProjector(
    rows.filter((row) => findLoop(row, options).traits.prompt),
    engine,
  );
  const { reward } = options;
  const manager =
    typeof reward === "function" || reward === null
      ? makeRewardManager("naive", { reward, rewards: options.rewards })
      : reward;
  checkBranches(rows, options, manager.granularity === "sample");
  // All conversations share the schemas.
  for (const tool of options.tools.values()) freezeData(tool.schema);
  const slots = options.slots ?? new Semaphore(options.concurrency ?? engine.info.maxSequences);
  const run = new AbortController();
  // Every running conversation listens to the signal.
  setMaxListeners(0, run.signal);
  const abort = () => run.abort(options.signal?.reason);
  if (options.signal?.aborted) abort();
  options.signal?.addEventListener("abort", abort, { once: true });
  const linked = { ...options, signal: run.signal, onWarning: onceEach(options.onWarning) };
  // After an error the results of other conversations are not needed: abort them.
  const stop = (error: unknown) => run.abort(error);
  const rewards = new RewardQueue(manager, countConversations(rows, options.n), run.signal);
  let first = 0;
  const groups = rows.map((row, position) => {
    const group = new RolloutGroup(engine, row, { position, first }, slots, rewards, linked, stop);
    first += samplesOf(row, options.n);
    return group;
  });
  const watch = watchEventLoop(linked.onWarning);
  const waitForJudges = async () => {
    await Promise.allSettled(groups.flatMap((group) => group.judging));
    watch.stop();
    options.signal?.removeEventListener("abort", abort);
  };
  try {
    const samples = (await settleAll(groups.map((group) => group.run()))).flat();
    void waitForJudges();
    return {
      conversations: samples.map(({ ended }) => ended),
      finish: () => settleAll(samples.map(({ judged }) => judged)),
    };
  } catch (error) {
    await waitForJudges();
    throw error;
  }
}

/** Forwards only the first warning of each kind; the first line identifies the kind. */
function onceEach(warn: ((warning: string) => void) | undefined): (warning: string) => void {
  const seen = new Set<string>();
  return (warning) => {
    const kind = warning.split("\n", 1)[0]!;
    if (seen.has(kind)) return;
    seen.add(kind);
    warn?.(warning);
  };
}

/**
 * Checks that all names in a row exist, before anything is generated.
 * @throws ConfigError; DataError for a wrong `samples`.
 */
function checkRow(row: DatasetRow, options: RolloutOptions): void {
  if (row.samples !== undefined && !isSampleCount(row.samples)) {
    throw new DataError("is no number of conversations", {
      code: "data/bad-row",
      subject: `samples of row ${row.index} (${row.place})`,
      expected: `a whole number from 1 to ${MOST_SAMPLES}, or none: as many as the run says`,
      received: String(row.samples),
    });
  }
  const { traits } = findLoop(row, options);
  if (traits.interactions) selectInteraction(options.interactions ?? null, row);
  if (options.reward === null) checkRowHasReward(row, { ...options, interactions: options.interactions ?? null });
  if (!traits.tools || options.tools.size === 0) return;
  const { need_tools_kwargs, tools_kwargs, tool_selection } = row.extraInfo;
  checkToolNames(row, "tool_selection", tool_selection ?? [], options.tools);
  if (need_tools_kwargs) checkToolNames(row, "tools_kwargs", Object.keys(tools_kwargs ?? {}), options.tools);
}

function checkToolNames(row: DatasetRow, key: string, names: readonly string[], tools: RolloutOptions["tools"]): void {
  const missing = names.filter((name) => !tools.has(name));
  if (missing.length === 0) return;
  throw new ConfigError("names a tool that is not configured", {
    code: "config/unknown-tool",
    subject: `row ${row.index}: extra_info.${key}`,
    expected: [...tools.keys()].join(", "),
    received: missing.join(", "),
    remedy: "name it in the file that multi_turn.tool_config_path points to",
  });
}
