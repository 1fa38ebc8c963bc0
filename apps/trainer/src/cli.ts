import { defineCommand, runMain } from "citty";
import { demoCommand } from "./commands/demo.js";
import { sftCommand } from "./commands/sft.js";
import { trainCommand } from "./commands/train.js";

const main = defineCommand({
  meta: {
    name: "cria",
    version: "0.1.0",
    description: "Raise your own llama: multi-turn, tool-using reinforcement learning for llama.cpp models.",
  },
  subCommands: { demo: demoCommand, train: trainCommand, sft: sftCommand },
});

await runMain(main);
