import { defineCommand, runMain } from "citty";
import { sftCommand } from "./commands/sft.js";

const main = defineCommand({
  meta: { name: "cria", version: "0.1.0", description: "Raise your own llama: reinforcement learning for llama.cpp agents." },
  subCommands: { sft: sftCommand },
});

await runMain(main);
