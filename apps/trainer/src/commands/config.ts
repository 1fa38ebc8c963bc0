import { ConfigError } from "@cria/core";
import { defineCommand } from "citty";
import { convertVerlFile } from "../config/from-verl/from-verl.js";
import { printConversion } from "../config/from-verl/print-conversion.js";
import { commonArgs, runCommand } from "./run-command.js";

const args = {
  "from-verl": { type: "string", description: "A script (.sh) that trains with verl, or a YAML config of verl" },
  overrides: {
    type: "positional",
    description: 'Any number of key.path=value; they stand for "$@" in a script',
    required: false,
  },
  ...commonArgs,
} as const;

export const configCommand = defineCommand({
  meta: { name: "config", description: "Convert a config of verl: YAML on stdout, with what was set aside and why" },
  args,
  run: ({ args: given }) =>
    runCommand(given, [...Object.keys(args), "fromVerl"], async () => {
      const file = given["from-verl"];
      if (file === undefined || file === "")
        throw new ConfigError("is missing", {
          code: "config/bad-argument",
          subject: "--from-verl",
          expected: "a script (.sh) that trains with verl, or a YAML config of verl",
          remedy: "cria config --from-verl run.sh > config.yaml",
        });
      const conversion = convertVerlFile(file, given._.map(String));
      if (given.json) console.log(JSON.stringify(conversion));
      else process.stdout.write(printConversion(conversion, file));
    }),
});
