import { ConfigError } from "@cria/core";
import { type LoadedConfig, type TrainConfig, trainConfigSchema } from "@cria/trainer";
import { defineCommand } from "citty";
import type { Verdict } from "../doctor/check.js";
import { type Diagnosis, examine } from "../doctor/examine.js";
import { measureTime, type TimeNeed } from "../doctor/measure-time.js";
import { colors as pc } from "../terminal/colors.js";
import { formatBytes } from "../terminal/format-bytes.js";
import { formatCount, formatSeconds, Progress } from "../terminal/progress.js";
import { readConfig } from "./read-config.js";
import { commonArgs, runCommand } from "./run-command.js";

const args = {
  config: { type: "positional", description: "YAML config of a training, to check whether it fits", required: false },
  overrides: { type: "positional", description: "Any number of key.path=value", required: false },
  time: {
    type: "boolean",
    description: "Also load the config's model, and measure how long a step takes; a minute or less with small models",
  },
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
      if (given.time && !loaded) throw refuseTime();
      const diagnosis = await examine(loaded);
      if (!given.json) print(diagnosis);
      const time = given.time && loaded ? await timeSteps(loaded, given.json === true) : null;
      if (given.json) console.log(JSON.stringify({ ...diagnosis, time }));
      else if (time) printTime(time);
      if (diagnosis.checks.some(({ verdict }) => verdict === "problem")) process.exitCode = 1;
    }),
});

const marks: Record<Verdict, string> = { ok: pc.green("ok"), warning: pc.yellow("hm"), problem: pc.red("no") };

function print({ checks, memory, cuda, metal, vulkan }: Diagnosis): void {
  for (const { name, verdict, found, remedy } of checks) {
    console.log(`${marks[verdict]}  ${name.padEnd(12)} ${found}`);
    if (remedy) console.log(`${" ".repeat(17)}${pc.bold("try:")} ${remedy}`);
  }
  // Without a driver there is probably no GPU: the other parts only matter to users who asked for one.
  const isAsked = checks.some(({ name, verdict }) => name === "GPU" && verdict !== "ok");
  // Vulkan may have a driver that computes on the CPU.
  const isThere = { CUDA: cuda[0]?.found, Metal: metal[0]?.found, Vulkan: vulkan.at(-1)?.found };
  for (const [title, parts] of Object.entries({ CUDA: cuda, Metal: metal, Vulkan: vulkan })) {
    if (!isThere[title as keyof typeof isThere] && !isAsked) continue;
    console.log(`\n${pc.bold(`what a GPU needs by ${title}`)}`);
    for (const { name, found, problem } of parts)
      console.log(`  ${name.padEnd(10)} ${found ?? pc.dim(problem ?? "not reached")}`);
  }
  if (!memory) return;
  console.log(`\n${pc.bold("memory at its peak, estimated")}`);
  for (const { name, bytes, detail } of memory.items)
    console.log(`  ${formatBytes(bytes).padStart(9)}  ${name.padEnd(28)} ${pc.dim(detail)}`);
  console.log(`  ${formatBytes(memory.needed).padStart(9)}  of ${formatBytes(memory.available)} available`);
}

function refuseTime(): ConfigError {
  return new ConfigError("needs a config", {
    code: "config/missing-argument",
    subject: "cria doctor --time",
    expected: "the YAML config of a training",
    received: "none",
  });
}

async function timeSteps({ values, folder }: LoadedConfig<TrainConfig>, silent: boolean): Promise<TimeNeed> {
  const progress = new Progress({
    label: "measure",
    total: 1,
    silent,
    format: (share) => `${Math.round(100 * share)} %`,
  });
  try {
    return await measureTime(values, folder, (done, part) => progress.update(done, part));
  } finally {
    progress.clear();
  }
}

function printTime({ speeds, size, conversations, step, steps }: TimeNeed): void {
  const { responseLength, prompts, samples } = size;
  console.log(
    `\n${pc.bold("time of a step, as measured here, without tools, judges, references, teachers, measured turns (vine) and validation")}`,
  );
  const line = (seconds: number, detail: string) =>
    console.log(`  ${formatSeconds(seconds).padStart(9)}  ${pc.dim(detail)}`);
  line(step.longest, `if each of ${prompts} x ${samples} responses has all of its ${responseLength} tokens`);
  line(step.half, "if each has half of them");
  if (steps !== null) line(steps * step.longest, `at most for ${steps} steps`);
  const speed = (value: number) => `${formatCount(value)} tokens/s`;
  const parts = [
    `prompts ${speed(speeds.prompts)}`,
    `sampling ${speed(speeds.sampling)} with ${conversations} conversations`,
    `update ${speed(speeds.update)}`,
  ];
  console.log(`  ${parts.join(", ")}`);
}
