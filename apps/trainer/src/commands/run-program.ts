import { type ArgsDef, type CommandDef, renderUsage, runMain } from "citty";
import { colors as pc } from "../terminal/colors.js";
import { checkCommandLine } from "./check-command-line.js";

/**
 * Runs the command that the process's arguments name.
 * @param notes text below the options in the `--help` of a command, by its name.
 */
export async function runProgram(program: CommandDef, notes: Readonly<Record<string, string>>): Promise<void> {
  try {
    checkCommandLine(program, process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`\n${pc.red("error")} ${(error as Error).message}\n`);
    process.exitCode = 2;
    return;
  }
  await runMain(program, {
    showUsage: async <T extends ArgsDef>(command: CommandDef<T>, parent?: CommandDef<T>) => {
      const { name = "" } = (command.meta ?? {}) as { name?: string };
      console.log(
        [await renderUsage(command, parent), parent && notes[name], ""].filter((part) => part !== undefined).join("\n"),
      );
    },
  });
}
