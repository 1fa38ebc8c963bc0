import { defineCommand } from "citty";
import { scaffoldEnvironment } from "../init/scaffold-environment.js";
import { colors as pc } from "../terminal/colors.js";
import { commonArgs, runCommand } from "./run-command.js";

const args = {
  dir: { type: "positional", description: "A new folder; its name is the environment's", required: true },
  ...commonArgs,
} as const;

export const initCommand = defineCommand({
  meta: { name: "init", description: "A new environment that runs at once: tool, interaction, config, data, test" },
  args,
  run: ({ args: given }) =>
    runCommand(given, Object.keys(args), async () => {
      const made = await scaffoldEnvironment(given.dir);
      if (given.json) return console.log(JSON.stringify(made));
      const folder = given.dir;
      console.log(`${pc.bold(made.name)} is in ${folder}: ${made.files.join(", ")}\n`);
      console.log("next");
      for (const [command, what] of [
        [`cria check-env ${folder}/tools.yaml`, "a scripted model tries the tool"],
        [`cria rollout ${folder}/config.yaml --val`, "conversations of the embedded policy"],
        [`cria train ${folder}/config.yaml`, "training, a few minutes"],
      ])
        console.log(`  ${command!.padEnd(44)} ${pc.dim(what!)}`);
    }),
});
