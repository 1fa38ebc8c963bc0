import { defineCommand } from "citty";
import { checkRunFolder } from "../manage/check-run-folder.js";
import { watchAsLines, watchOnScreen } from "../watch/watch-run.js";
import { commonArgs, runCommand } from "./run-command.js";

const args = {
  run: { type: "positional", description: "A run folder, running or finished", required: true },
  ...commonArgs,
} as const;

/** Text below the options in the help. */
export const watchNotes = `KEYS

  1 to 5, tab, ← →   overview, groups, conversation, tools, findings
  j k, ↑ ↓, space b  scroll
  q                  quit; the run continues

Without a terminal, and with --json, it writes a line for each step until the run is over.
`;

export const watchCommand = defineCommand({
  meta: {
    name: "watch",
    description: "Show a run on the whole screen: curves, groups, a conversation, tools, problems",
  },
  args,
  run: ({ args: given }) =>
    runCommand(given, async (signal) => {
      const folder = await checkRunFolder(String(given.run));
      const isTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true && !given.json;
      if (isTerminal) await watchOnScreen(folder, { input: process.stdin, output: process.stdout, signal });
      else await watchAsLines(folder, (line) => console.log(line), { json: given.json === true, signal });
      // So that the exit code names the signal.
      signal.throwIfAborted();
    }),
});
