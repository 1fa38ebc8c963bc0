import { defineCommand, runMain } from "citty";

import { checkEnvCommand } from "./commands/check-env.js";
import { configCommand } from "./commands/config.js";
import { dataCommand } from "./commands/data.js";
import { demoCommand } from "./commands/demo.js";
import { doctorCommand } from "./commands/doctor.js";
import { evalCommand } from "./commands/eval.js";
import { exportCommand } from "./commands/export.js";
import { initCommand } from "./commands/init.js";
import { rolloutCommand } from "./commands/rollout.js";
import { sftCommand } from "./commands/sft.js";
import { trainCommand } from "./commands/train.js";

const main = defineCommand({
  meta: {
    name: "cria",
    version: "0.1.0",
    description: `Raise your own llama: multi-turn, tool-using reinforcement learning for llama.cpp models.

  See it work
    cria demo                                        train the embedded policy; a few minutes on a laptop
    cria doctor config.yaml                          is all well here, and will this config fit into memory?

  Make an environment
    cria init my-env                                 a new environment: tool, interaction, config, data, test
    cria check-env my-env/my-tool.ts#MyTool          a scripted model tries a tool or interaction: what is wrong with it?
    cria data gsm8k --source <folder> --out <folder> GSM8K as Parquet, ready to train on
    cria rollout my-env/config.yaml                  conversations alone, as JSONL

  Train
    cria sft config.yaml                             teach by example first: conversations in, a GGUF out
    cria train config.yaml                           train your agent: a GGUF, tools, rows, a reward
    cria train config.yaml data.train_batch_size=8   any key of the config, set from the command line
    cria config --from-verl run.sh > config.yaml     a script or config of verl, as Cria's: what was set aside, and why
    (the same command again goes on from the newest checkpoint, after Ctrl-C, a crash or a power cut)

  Use what was trained
    cria eval config.yaml --checkpoint <run folder>  held-out success of a checkpoint, --adapter or --model
    cria export --run <run folder> --adapter a.gguf  for stock llama.cpp: the LoRA adapter,
    cria export --run <run folder> --merged m.gguf --quantize Q8_0   or the whole model

Every run leaves config.json, metrics.jsonl, rollouts/<step>.jsonl, checkpoints and the trained weights in
runs/<project>/<experiment>. Every command takes --json (the result alone, on stdout) and --help. The exit code is 0 when
done, 1 after an error, 128 + its number after a signal (130 after Ctrl-C): training saves what is done first.
`,
  },
  subCommands: {
    demo: demoCommand,
    train: trainCommand,
    sft: sftCommand,
    eval: evalCommand,
    export: exportCommand,
    doctor: doctorCommand,
    config: configCommand,
    data: dataCommand,
    rollout: rolloutCommand,
    "check-env": checkEnvCommand,
    init: initCommand,
  },
});

await runMain(main);
