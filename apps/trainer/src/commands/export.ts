import { resolve } from "node:path";
import { ConfigError } from "@cria/core";
import { type ExportModelResult, exportModel, listQuantizeTypes } from "@cria/engine";
import { checkArgument, fetchModel } from "@cria/trainer/internal";
import { defineCommand } from "citty";
import { type ExportResult, exportRun } from "../export/export-run.js";
import { findTrained } from "../export/find-trained.js";
import { showEvents } from "../terminal/show-events.js";
import { commonArgs, runCommand } from "./run-command.js";

const args = {
  run: { type: "string", description: "Run folder, or one of its checkpoints/global_step_<N>" },
  model: { type: "string", description: "Any other model, instead of --run: its GGUF or its hf: address" },
  adapter: { type: "string", description: "File for the LoRA adapter (llama.cpp: --lora)" },
  merged: { type: "string", description: "File for the whole model, with the adapter merged into its weights" },
  quantize: {
    type: "string",
    description: "Type of the merged model: F16, BF16, Q8_0, Q6_K, Q5_K_M, Q4_K_M, ... (a wrong one lists all)",
  },
  base: { type: "string", description: "The run's base model, if it has moved" },
  role: { type: "string", description: "The role whose adapter is taken, of a run that trained one for each" },
  ...commonArgs,
} as const;

export const exportCommand = defineCommand({
  meta: { name: "export", description: "Export a run's weights, or any model, as GGUF files for stock llama.cpp" },
  args,
  run: ({ args: given }) =>
    runCommand(given, async (signal) => {
      checkArguments(given);
      const { merged, base } = given;
      const quantize = readQuantize(given.quantize, merged !== undefined);
      const fetch = (name: string, address: string) =>
        fetchModel(checkArgument(name, address), { report: showEvents({ silent: given.json }), signal });
      if (given.model !== undefined) {
        const file = resolve(merged!);
        const written = await exportModel({ base: await fetch("--model", given.model), output: file, quantize });
        return tell({ step: null, adapter: null, merged: { file, ...written } }, given.json);
      }
      const trained = await findTrained(
        checkArgument("--run", given.run!),
        base === undefined ? null : await fetch("--base", base),
        (text) => process.stderr.write(`${text}\n`),
        { role: given.role },
      );
      const adapter = given.adapter ? resolve(given.adapter) : null;
      tell(await exportRun(trained, { adapter, merged: merged ? resolve(merged) : null, quantize }), given.json);
    }),
});

function tell(result: ExportResult, json = false) {
  if (json) return console.log(JSON.stringify(result));
  const after = result.step === null ? "" : `, after step ${result.step}`;
  if (result.adapter) console.log(`${result.adapter}: LoRA adapter${after}`);
  if (result.merged) console.log(`${result.merged.file}: model${after}; ${describeModel(result.merged)}`);
}

function describeModel({ merged, types, bytes }: ExportModelResult): string {
  const kinds = Object.entries(types).map(([type, n]) => `${n} ${type}`);
  return `${merged} weights changed, ${kinds.join(", ")}, ${(bytes / 1e6).toFixed(1)} MB`;
}

type Given = Partial<Record<"run" | "model" | "adapter" | "merged" | "base" | "role", string>>;

/** @throws ConfigError without an output or a source, or for options that contradict each other. */
function checkArguments(given: Given): void {
  const { run, model, adapter, merged } = given;
  const refuse = (subject: string, problem: string, expected: string, received: string) => {
    throw new ConfigError(problem, { code: "config/bad-argument", subject, expected, received });
  };
  if (run === undefined && model === undefined)
    refuse("--run or --model", "is missing", "a run's folder, or a model's file", "neither");
  if (!adapter && !merged) refuse("--adapter or --merged", "is missing", "a file to write", "neither");
  const other = (["run", "adapter", "base", "role"] as const).find((name) => given[name] !== undefined);
  if (model !== undefined && other)
    refuse(
      `--model and --${other}`,
      "exclude each other",
      "with --model, which no run trained: only --merged and --quantize",
      "both",
    );
}

/**
 * Checks the type before anything is loaded or written.
 * @throws ConfigError
 */
function readQuantize(text: string | undefined, merged: boolean): string | null {
  if (text === undefined) return null;
  const types = listQuantizeTypes();
  if (merged && types.includes(text.toUpperCase())) return text.toUpperCase();
  throw new ConfigError(merged ? "is not a type that a model can be quantized to" : "needs --merged", {
    code: "config/bad-argument",
    subject: "--quantize",
    expected: merged ? types.join(", ") : "--merged out.gguf",
    received: text,
  });
}
