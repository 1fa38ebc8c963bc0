import { ConfigError } from "@cria/core";
import { configFiles, convertVerlFiles, findConfigFile, findKeys, formatConversion } from "@cria/trainer/internal";
import { defineCommand } from "citty";
import { formatKey, formatKeys } from "../terminal/print-keys.js";
import { commonArgs, runCommand } from "./run-command.js";

const args = {
  key: {
    type: "positional",
    description:
      "A key (trainer.save_freq), a section (trainer), or a last name (save_freq); none: all. With --from-verl more files, and any number of key.path=value",
    required: false,
  },
  of: {
    type: "string",
    description: `File whose keys to show: ${configFiles.map(({ name }) => name).join(", ")}`,
    default: "train",
  },
  "from-verl": {
    type: "string",
    description:
      'Convert a script (.sh) that trains with verl, a YAML config of verl, or both (--from-verl run.sh base.yaml): YAML on stdout; key.path=value stand for "$@"',
  },
  ...commonArgs,
} as const;

export const configCommand = defineCommand({
  meta: { name: "config", description: "Explain the keys of a config and their defaults; convert verl's configs" },
  args,
  run: ({ args: given, rawArgs }) =>
    runCommand(given, async () => {
      const verl = given["from-verl"];
      if (verl === "")
        throw new ConfigError("names no file", {
          code: "config/missing-argument",
          subject: "--from-verl",
          expected: "a script (.sh) that trains with verl, or a YAML config of verl",
          remedy: "cria config --from-verl run.sh > config.yaml",
        });
      if (verl !== undefined) return convert(listFiles(rawArgs, verl), given._.map(String), given.json);
      const file = findConfigFile(given.of);
      const query = given.key ?? "";
      const { keys, note } = findKeys(file, query);
      if (given.json) return console.log(JSON.stringify(note === null ? keys : { note, keys }));
      if (note !== null) console.log(`${note}${keys.length > 0 ? "\n" : ""}`);
      const command = file.name === "sft" ? "cria sft sft.yaml" : "cria train config.yaml";
      if (keys.length === 1) console.log(formatKey(keys[0]!, file.list === null ? command : null));
      else if (keys.length > 1) console.log(formatKeys(keys));
    }),
});

/** The files of --from-verl, which may be given several times: citty keeps only the last one. */
function listFiles(words: readonly string[], last: string): string[] {
  const files = words.flatMap((word, i) => {
    const [, , value] = /^--(from-verl|fromVerl)=(.*)$/s.exec(word) ?? [];
    return value ?? (/^--(from-verl|fromVerl)$/.test(word) ? (words[i + 1] ?? []) : []);
  });
  return files.length > 0 ? files : [last];
}

/** @param words more files, and overrides. */
function convert(files: string[], words: readonly string[], json: boolean | undefined): void {
  const isOverride = (word: string) => word.startsWith("~") || word.includes("=");
  const all = [...files, ...words.filter((word) => !isOverride(word))];
  const conversion = convertVerlFiles(all, words.filter(isOverride));
  if (json) console.log(JSON.stringify(conversion));
  else process.stdout.write(formatConversion(conversion, all.join(", ")));
}
