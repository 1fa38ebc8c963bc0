import { join } from "node:path";
import { defineCommand } from "citty";
import pc from "picocolors";
import { loadConfig } from "../config/load-config.js";
import { trainConfigSchema } from "../config/train-config.js";
import { formatCount, Progress } from "../terminal/progress.js";
import { RunFolder } from "../train/run-folder.js";
import { countSteps, describeTrajectory, runTraining } from "../train/run-training.js";
import { openSession, type Session } from "../train/session.js";
import { validate } from "../train/validate.js";
import { runCommand } from "./run-command.js";

export const trainCommand = defineCommand({
  meta: {
    name: "train",
    description:
      "Reinforcement learning: cria train config.yaml [key=value ...], for example trainer.total_training_steps=10",
  },
  args: {
    config: { type: "positional", description: "YAML config; see examples/calculator/config.yaml", required: true },
    json: { type: "boolean", description: "Print the last step's metrics as JSON" },
    verbose: { type: "boolean", description: "Show stacks of errors" },
  },
  run: ({ args }) =>
    runCommand(args, async (signal) => {
      const { values: config, folder } = loadConfig(trainConfigSchema, args.config, args._.slice(1).map(String));
      const session = await openSession(config, folder, { signal });
      try {
        const run = await RunFolder.create(
          join(config.trainer.default_local_dir, config.trainer.project_name, config.trainer.experiment_name),
        );
        await run.clear();
        await run.writeJson("config.json", config);
        const total = countSteps(session);
        const check = makeValidation(session, run, args.json === true);
        if (config.trainer.val_before_train) await check(0);
        const progress = new Progress({ label: "train", total, silent: args.json });
        const history = await runTraining(session, run, {
          onStep: (step, _, m) =>
            progress.update(
              step,
              `reward ${m["critic/rewards/mean"]!.toFixed(3)} · ${formatCount(m["perf/throughput"]!)} tok/s · grad ${(m["actor/grad_norm"] ?? 0).toFixed(2)}`,
            ),
          afterStep: async (step) => {
            if (config.trainer.test_freq > 0 && step % config.trainer.test_freq === 0 && step < total)
              await check(step);
          },
        });
        progress.finish();
        await check(total);
        if (args.json) console.log(JSON.stringify(history.at(-1) ?? {}));
        else console.log(`run folder: ${run.path}`);
      } finally {
        await session.dispose();
      }
    }),
});

/** Validates on val_files (if any), prints success, and writes the conversations. */
function makeValidation(session: Session, run: RunFolder, silent: boolean): (step: number) => Promise<void> {
  return async (step) => {
    if (session.valRows.length === 0) return;
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
  };
}
