import { type CommandDef, runCommand } from "citty";
import { commands } from "../commands/all-commands.js";

/**
 * Runs a command of `cria` in this process, where its modules are loaded already: from `folder`, with its output and
 * `process.exitCode`.
 */
export async function runHere(folder: string, [name, ...rawArgs]: readonly string[]): Promise<void> {
  const before = process.cwd();
  process.chdir(folder);
  try {
    await runCommand(commands[name as keyof typeof commands] as unknown as CommandDef, { rawArgs });
  } finally {
    process.chdir(before);
  }
}
