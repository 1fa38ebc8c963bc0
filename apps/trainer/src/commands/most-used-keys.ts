import { trainConfigSchema } from "@cria/trainer";
import { listKeys } from "@cria/trainer/internal";

const MOST_USED = [
  "actor_rollout_ref.model.path",
  "data.train_files",
  "actor_rollout_ref.rollout.n",
  "actor_rollout_ref.actor.optim.lr",
  "trainer.total_training_steps",
];

/** The config part of `cria train --help`. */
export function describeMostUsedKeys(): string {
  const keys = listKeys(trainConfigSchema);
  const rows = MOST_USED.map((name) => {
    const { meaning, default: value } = keys.find(({ key }) => key === name)!;
    return `  ${name.padEnd(34)} ${meaning}${value === undefined ? "" : ` (${JSON.stringify(value)})`}`;
  });
  return [
    "KEYS OF THE CONFIG",
    "",
    ...rows,
    "",
    "All of them: cria config; one in full: cria config trainer.save_freq.",
  ].join("\n");
}
