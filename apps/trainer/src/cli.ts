import { defineCommand, runMain } from "citty";
import { demoCommand } from "./commands/demo.js";
import { sftCommand } from "./commands/sft.js";
import { trainCommand } from "./commands/train.js";

const main = defineCommand({
  meta: {
    name: "cria",
    version: "0.1.0",
    description: `Raise your own llama: multi-turn, tool-using reinforcement learning for llama.cpp models.

  cria demo                                        train the embedded policy; a few minutes on a laptop
  cria train config.yaml                           train your agent: a GGUF, tools, rows, a reward
  cria train config.yaml data.train_batch_size=8   any key of the config, set from the command line
  cria sft config.yaml                             teach by example first: conversations in, a GGUF out

Every run leaves config.json, metrics.jsonl, rollouts/<step>.jsonl and the trained weights in
runs/<project>/<experiment>. The exit code is 0 when done, 1 after an error, 130 after Ctrl-C.
`,
  },
  subCommands: { demo: demoCommand, train: trainCommand, sft: sftCommand },
});

await runMain(main);
