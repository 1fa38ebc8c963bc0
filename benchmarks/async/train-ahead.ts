import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RunFolder, runTraining, validate } from "cria";
import { calculatorFolder, openCalculator } from "../open-calculator.js";

/** Number of conversations of a step. */
export const CONVERSATIONS = 128;

export interface AheadOptions {
  lag: number;
  /** Most conversations that decode at once. */
  slots: number;
  seed: number;
  steps: number;
  /** Whether answers of the tool take 0.1 to 2 seconds; else they are instant. */
  isSlow: boolean;
  /** Decides how long each answer takes. */
  delays?: string;
  threads?: number;
  /** Steps between measurements of success. */
  every?: number;
}

export interface AheadRun {
  /** Seconds of the training, and of it until so many steps were done, by their number. */
  seconds: number;
  secondsAfter: Map<number, number>;
  /** Share of the held-out problems that were solved, greedily, by steps done. */
  success: Map<number, number>;
  /** Digest of the adapter at the end. */
  sha256: string;
}

/** A training of the calculator. Success is measured afterwards, with instant tools: it takes no time of the training. */
export async function trainAhead(options: AheadOptions): Promise<AheadRun> {
  const { lag, slots, seed, steps, isSlow, delays = "", threads, every = 5 } = options;
  const folder = await mkdtemp(join(tmpdir(), "cria-async-"));
  process.env.CRIA_DELAYS = delays;
  const open = (overrides: readonly string[]) => openCalculator({ seed, steps, threads }, overrides);
  try {
    const session = await open([
      `trainer.v1.trainer_mode=${lag > 0 ? "colocate_async" : "sync"}`,
      `trainer.v1.colocate_async.num_warmup_batches=${lag}`,
      `actor_rollout_ref.rollout.max_num_seqs=${slots}`,
      ...(isSlow
        ? [`actor_rollout_ref.rollout.multi_turn.tool_config_path=${join(import.meta.dirname, "tools.yaml")}`]
        : []),
    ]);
    const secondsAfter = new Map<number, number>();
    const saved = new Map<number, string>();
    let step = 0;
    let paused = 0;
    const started = performance.now();
    const passed = () => (performance.now() - started - paused) / 1000;
    try {
      await runTraining(
        { ...session, valRows: [] },
        {
          folder: await RunFolder.create(join(folder, "run")),
          configFolder: calculatorFolder,
          afterStep: async () => {
            step++;
            secondsAfter.set(step, passed());
            if (step % every !== 0 && step !== steps) return;
            const began = performance.now();
            saved.set(step, join(folder, `${step}.gguf`));
            await session.policy.save(saved.get(step)!);
            paused += performance.now() - began;
          },
        },
      );
    } finally {
      await session.dispose();
    }
    const sha256 = createHash("sha256")
      .update(await readFile(saved.get(steps)!))
      .digest("hex");
    const success = new Map<number, number>();
    for (const [after, adapter] of saved) {
      const judge = await open([
        "actor_rollout_ref.model.lora_rank=0",
        `actor_rollout_ref.model.lora_adapter_path=${adapter}`,
      ]);
      try {
        const { trajectories } = await validate(judge, { temperature: 0, step: 0 });
        success.set(after, trajectories.reduce((sum, { reward }) => sum + reward, 0) / trajectories.length);
      } finally {
        await judge.dispose();
      }
    }
    return { seconds: secondsAfter.get(steps)!, secondsAfter, success, sha256 };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
