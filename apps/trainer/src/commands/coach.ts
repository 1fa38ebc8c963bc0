import { diagnoseRun } from "@cria/trainer";
import { defineCommand } from "citty";
import { checkRunFolder } from "../manage/check-run-folder.js";
import { printFindings } from "../terminal/print-findings.js";
import { commonArgs, runCommand } from "./run-command.js";

const args = {
  run: { type: "positional", description: "A run folder of cria train; it may still be running", required: true },
  ...commonArgs,
} as const;

export const coachCommand = defineCommand({
  meta: { name: "coach", description: "Find problems of a run, with evidence and remedies" },
  args,
  run: ({ args: given }) =>
    runCommand(given, async () => {
      const folder = await checkRunFolder(String(given.run));
      const findings = await diagnoseRun(folder);
      if (given.json) console.log(JSON.stringify(findings));
      else printFindings(findings, folder);
    }),
});
