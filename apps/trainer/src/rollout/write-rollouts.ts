import { DataError, type Trajectory } from "@cria/core";
import { type Filter, makeTrainingMessages } from "@cria/records";
import { writeTrainingRows } from "@cria/records/internal";
import type { DatasetRow } from "@cria/rollout";
import { resolveToolFormat } from "@cria/tools/internal";
import type { Training } from "@cria/trainer";
import { dumpTrajectories, listShown, saveDump } from "@cria/trainer/internal";

/** trajectories: the lines of a dump. messages: the rows that `cria sft` reads. */
export const rolloutForms = ["trajectories", "messages"] as const;
export type RolloutForm = (typeof rolloutForms)[number];

export interface WriteRolloutsOptions {
  rows: readonly DatasetRow[];
  /** Selects conversations; null: all. */
  keep: Filter | null;
  form: RolloutForm;
  file: string;
}

export interface WrittenRollouts {
  file: string;
  form: RolloutForm;
  /** Conversations in the file. */
  written: number;
  /** Kept conversations without anything to learn from: they failed, or their last turn was cut. Only for messages. */
  unusable: number;
  /** Written conversations that `cria sft` sees with other tokens or masks than the rollout had. Only for messages. */
  inexact: number;
}

/**
 * Writes the kept conversations.
 * @throws DataError when there are none: nothing is written then.
 */
export async function writeRollouts(
  training: Training,
  trajectories: readonly Trajectory[],
  { rows, keep, form, file }: WriteRolloutsOptions,
): Promise<WrittenRollouts> {
  const dump = (some: readonly Trajectory[]) =>
    dumpTrajectories(training.policy.engine, training.environment, some, { step: null, rows, times: true });
  const lines = dump(trajectories);
  const kept = trajectories.filter((_, i) => keep === null || keep(lines[i]!));
  if (kept.length === 0) throw makeNothingKept(trajectories, file);
  // Dumps again, because the file's first line must describe its tools.
  const keptLines = dump(kept);
  if (form === "trajectories") {
    await saveDump(file, keptLines, listShown(kept));
    return { file, form, written: kept.length, unusable: 0, inexact: 0 };
  }
  const { tokenizer } = training.policy;
  const { tools, multiTurn } = training.environment;
  const { parse } = resolveToolFormat(multiTurn.format);
  const made = keptLines.flatMap((line) => {
    const schemas = line.tools.map((name) => tools.get(name)!.schema);
    return makeTrainingMessages(line, { tokenizer, parse, schemas }) ?? [];
  });
  if (made.length === 0) throw makeNothingKept(kept, file);
  await writeTrainingRows(
    file,
    made.map(({ row }) => row),
  );
  const inexact = made.filter(({ isExact }) => !isExact).length;
  return { file, form, written: made.length, unusable: kept.length - made.length, inexact };
}

function makeNothingKept(trajectories: readonly Trajectory[], file: string): DataError {
  const rewards = trajectories.filter((t) => t.rewards.score !== null).map((t) => t.reward);
  const [lowest, highest] = [Math.min(...rewards), Math.max(...rewards)];
  return new DataError("is not written: no conversation was kept", {
    code: "data/nothing-kept",
    subject: file,
    expected: "conversations that pass --keep, ended by themselves and did not fail",
    received: `${trajectories.length} conversations, ${rewards.length > 0 ? `rewards from ${lowest} to ${highest}` : "all failed"}`,
    remedy: "relax --keep, or roll out more: actor_rollout_ref.rollout.n, --rows",
  });
}
