import { defineCommand } from "citty";
import pc from "picocolors";
import { openRun } from "../checkpoints/open-run.js";
import { loadConfig } from "../config/load-config.js";
import { trainConfigSchema } from "../config/train-config.js";
import { formatCount, Progress } from "../terminal/progress.js";
import type { StepMetrics } from "../train/collect-metrics.js";
import type { RunFolder } from "../train/run-folder.js";
import { countSteps, describeTrajectory, runTraining } from "../train/run-training.js";
import { openSession, type Session } from "../train/session.js";
import { validate } from "../train/validate.js";
import { commonArgs, runCommand } from "./run-command.js";

const args = {
  config: { type: "positional", description: "YAML config; see examples/calculator/config.yaml", required: true },
  overrides: {
    type: "positional",
    description: "Any number of key.path=value, for example trainer.total_training_steps=10",
    required: false,
  },
  ...commonArgs,
} as const;

export const trainCommand = defineCommand({
  meta: { name: "train", description: "Reinforcement learning: rollouts, rewards, updates, validation" },
  args,
  run: ({ args: given }) =>
    runCommand(given, Object.keys(args), async (signal) => {
      const silent = given.json === true;
      const { values: config, folder } = loadConfig(trainConfigSchema, given.config, given._.slice(1).map(String));
      // Also with --json: stdout stays clean, and what happens to an earlier run must not go unseen.
      const say = (text: string) => process.stderr.write(`${text}\n`);
      const session = await openSession(config, folder, { signal });
      try {
        await trainSession(session, { silent, json: given.json === true, say });
      } finally {
        await session.dispose();
      }
    }),
});

interface Output {
  silent: boolean;
  json: boolean;
  say: (text: string) => unknown;
}

async function trainSession(session: Session, { silent, json, say }: Output): Promise<void> {
  const { trainer } = session.config;
  const { folder: run, checkpoints, resume, close } = await openRun(session.config, say);
  try {
    const total = countSteps(session);
    if (trainer.val_before_train && !resume) {
      const metrics = await runValidation(session, run, 0, silent);
      await run.appendLine("metrics.jsonl", { "training/global_step": 0, ...metrics });
    }
    if (resume && resume.step >= total)
      say(`nothing left to train: ${resume.step} steps are done, the config asks for ${total}`);
    const progress = new Progress({ label: "train", total, silent, start: resume?.step });
    const history = await runTraining(session, run, {
      checkpoints,
      resume,
      onStep: (step, _, m) =>
        progress.update(
          step,
          `reward ${m["critic/rewards/mean"]!.toFixed(3)} · ${formatCount(m["perf/throughput"]!)} tok/s · grad ${(m["actor/grad_norm"] ?? 0).toFixed(2)}`,
        ),
      validate: async (step) => {
        const due = step === total || (trainer.test_freq > 0 && step % trainer.test_freq === 0);
        return due ? runValidation(session, run, step, silent) : {};
      },
    });
    progress.finish();
    if (json) console.log(JSON.stringify(history.at(-1) ?? {}));
    else console.log(`run folder: ${run.path}`);
  } finally {
    await close();
  }
}

/** Validates on val_files (if any), prints success, writes the conversations, and returns the metrics. */
async function runValidation(session: Session, run: RunFolder, step: number, silent: boolean): Promise<StepMetrics> {
  if (session.valRows.length === 0) return {};
  const { val_kwargs } = session.config.actor_rollout_ref.rollout;
  const progress = new Progress({ label: "validate", total: session.valRows.length * val_kwargs.n, silent });
  let done = 0;
  const result = await validate(session, {
    temperature: val_kwargs.do_sample ? val_kwargs.temperature : 0,
    topP: val_kwargs.top_p,
    n: val_kwargs.n,
    step,
    onTrajectory: () => progress.update(++done),
  });
  progress.finish(pc.green(`success ${result.success.toFixed(3)}`));
  await run.writeLines(`validation/${step}.jsonl`, result.trajectories.map(describeTrajectory));
  return { ...result.metrics, "timing_s/testing": result.seconds };
}
