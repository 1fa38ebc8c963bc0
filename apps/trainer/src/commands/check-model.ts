import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import { checkArgument, fetchModel } from "@cria/trainer/internal";
import { defineCommand } from "citty";
import { checkModel, type ModelReport } from "../check-model/check-model.js";
import type { Verdict } from "../check-model/finding.js";
import { rememberModel } from "../check-model/known-models.js";
import { listDevices, readKind } from "../check-model/list-devices.js";
import { runInChild } from "../check-model/run-in-child.js";
import { colors as pc } from "../terminal/colors.js";
import { formatSeconds, Progress } from "../terminal/progress.js";
import { showEvents } from "../terminal/show-events.js";
import { findWidth, wrapParagraph } from "../terminal/wrap-text.js";
import { readDevice, readNumber } from "./read-options.js";
import { commonArgs, runCommand } from "./run-command.js";

const args = {
  model: {
    type: "positional",
    description: "A GGUF file, or its address as hf:Qwen/Qwen3-0.6B-GGUF:Q8_0",
    required: true,
  },
  device: { type: "string", description: "auto, cpu, cuda, metal or vulkan (default: every device)" },
  threads: { type: "string", description: "Threads (default: all cores)" },
  ...commonArgs,
} as const;

export const checkModelCommand = defineCommand({
  meta: {
    name: "check-model",
    description: "Check against references that Cria computes this model right on this machine; takes minutes",
  },
  args,
  run: ({ args: given }) =>
    runCommand(given, async (signal) => {
      const asked = readDevice(given.device) ?? "auto";
      const threads = readNumber("threads", given.threads, { whole: true, least: 1 }) ?? availableParallelism();
      const report = showEvents({ silent: given.json });
      const path = resolve(await fetchModel(checkArgument("model", given.model), { report, signal }));
      const devices = listDevices().filter((name) => asked === "auto" || readKind(name) === asked);
      // Loading the model then says what is missing.
      if (devices.length === 0) devices.push(asked);
      const progress = new Progress({ label: "check-model", total: 1, silent: given.json, format: formatSeconds });
      const result = await checkModel({
        path,
        devices,
        threads,
        run: runInChild,
        signal,
        onProgress: (done, total, row) => progress.update(Math.round(done), row, Math.round(total)),
      }).finally(() => progress.finish());
      await rememberModel(path);
      if (given.json) console.log(JSON.stringify(result));
      else print(result);
      if (!result.ok) process.exitCode = 1;
    }),
});

const marks: Record<Verdict, (text: string) => string> = {
  ok: pc.green,
  "falls short": pc.red,
  "not supported": pc.yellow,
  "not checked": pc.dim,
};
const VERDICT = 14;
const NAME = 28;

function print({ path, devices, ok }: ModelReport): void {
  const indent = " ".repeat(VERDICT + NAME);
  const width = Math.max(40, findWidth() - indent.length);
  for (const { device, findings, seconds } of devices) {
    console.log(`${pc.bold(path)} on ${device}, ${formatSeconds(seconds)}`);
    for (const { verdict, name, found, remedy } of findings) {
      const lines = [
        ...wrapParagraph(found, width),
        ...(remedy === null ? [] : wrapParagraph(`try: ${remedy}`, width)),
      ];
      const [first = "", ...more] = lines;
      console.log(`${marks[verdict](verdict.padEnd(VERDICT))}${name.padEnd(NAME)}${first}`);
      for (const line of more) console.log(indent + line);
    }
  }
  console.log(ok ? pc.green("nothing falls short") : pc.red("something falls short: see above"));
}
