import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { embeddedPolicy } from "cria";
import { type Learned, learn } from "./learn.js";
import { writeLines } from "./lines.js";

export interface TryLearningOptions {
  /** To train on, and held out. */
  rows: readonly object[];
  demonstrations: readonly object[];
}

/** The whole program of a folder, a step each, with the embedded policy, which does not learn it. */
export async function tryLearning(folder: string, { rows, demonstrations }: TryLearningOptions) {
  const output = mkdtempSync(join(tmpdir(), "cria-learn-"));
  const files = { rows: join(output, "rows.jsonl"), demonstrations: join(output, "demonstrations.jsonl") };
  const stages: (keyof Learned)[] = [];
  try {
    await writeLines(files.rows, rows);
    await writeLines(files.demonstrations, demonstrations);
    const learned = await learn(folder, {
      model: embeddedPolicy,
      output,
      steps: { sft: 1, rl: 1 },
      overrides: {
        sft: [
          `data.train_files=${files.demonstrations}`,
          `data.train_batch_size=${demonstrations.length}`,
          "data.max_length=512",
          "trainer.threads=1",
        ],
        rl: [
          `data.train_files=${files.rows}`,
          `data.val_files=${files.rows}`,
          "data.train_batch_size=2",
          "data.max_prompt_length=400",
          "data.max_response_length=64",
          "actor_rollout_ref.rollout.n=2",
          "trainer.threads=1",
        ],
      },
      onMeasured: (stage) => stages.push(stage),
    });
    return { learned, stages };
  } finally {
    rmSync(output, { recursive: true });
  }
}
