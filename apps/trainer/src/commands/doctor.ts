import { trainConfigSchema } from "@cria/trainer";
import { defineCommand } from "citty";
import type { Verdict } from "../doctor/check.js";
import { type Diagnosis, examine } from "../doctor/examine.js";
import { colors as pc } from "../terminal/colors.js";
import { formatBytes } from "../terminal/format-bytes.js";
import { readConfig } from "./read-config.js";
import { commonArgs, runCommand } from "./run-command.js";

const args = {
  config: { type: "positional", description: "YAML config of a training, to check whether it fits", required: false },
  overrides: { type: "positional", description: "Any number of key.path=value", required: false },
  ...commonArgs,
} as const;

export const doctorCommand = defineCommand({
  meta: {
    name: "doctor",
    description: "Check libraries, devices and memory of this machine, and whether a config fits",
  },
  args,
  run: ({ args: given }) =>
    runCommand(given, async () => {
      const [file, ...overrides] = given._.map(String);
      const loaded = file === undefined ? null : readConfig(trainConfigSchema, file, overrides);
      const diagnosis = await examine(loaded);
      if (given.json) console.log(JSON.stringify(diagnosis));
      else print(diagnosis);
      if (diagnosis.checks.some(({ verdict }) => verdict === "problem")) process.exitCode = 1;
    }),
});

const marks: Record<Verdict, string> = { ok: pc.green("ok"), warning: pc.yellow("hm"), problem: pc.red("no") };

function print({ checks, memory, cuda }: Diagnosis): void {
  for (const { name, verdict, found, remedy } of checks) {
    console.log(`${marks[verdict]}  ${name.padEnd(12)} ${found}`);
    if (remedy) console.log(`${" ".repeat(17)}${pc.bold("try:")} ${remedy}`);
  }
  // Without a driver there is probably no GPU: the other parts only matter to users who asked for one.
  if (cuda[0]?.found || checks.some(({ name, verdict }) => name === "GPU" && verdict !== "ok")) {
    console.log(`\n${pc.bold("what a GPU needs")}`);
    for (const { name, found, problem } of cuda)
      console.log(`  ${name.padEnd(10)} ${found ?? pc.dim(problem ?? "not reached")}`);
  }
  if (!memory) return;
  console.log(`\n${pc.bold("memory at its peak, estimated")}`);
  for (const { name, bytes, detail } of memory.items)
    console.log(`  ${formatBytes(bytes).padStart(9)}  ${name.padEnd(28)} ${pc.dim(detail)}`);
  console.log(`  ${formatBytes(memory.needed).padStart(9)}  of ${formatBytes(memory.available)} available`);
}
