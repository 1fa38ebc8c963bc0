import { resolve } from "node:path";
import { ConfigError } from "@cria/core";
import { listQuantizeTypes } from "@cria/engine";
import { checkArgument, fetchModel } from "@cria/trainer";
import { defineCommand } from "citty";
import { exportRun } from "../export/export-run.js";
import { findTrained } from "../export/find-trained.js";
import { showEvents } from "../terminal/show-events.js";
import { commonArgs, runCommand } from "./run-command.js";

const args = {
  run: { type: "string", description: "Run folder, or one of its checkpoints/global_step_<N>", required: true },
  adapter: { type: "string", description: "File for the LoRA adapter (llama.cpp: --lora)" },
  merged: { type: "string", description: "File for the whole model, the adapter added into its weights" },
  quantize: {
    type: "string",
    description: "Type of the merged model: F16, BF16, Q8_0, Q6_K, Q5_K_M, Q4_K_M, ... (a wrong one lists all)",
  },
  base: { type: "string", description: "The model that was trained, if it is no longer where it was" },
  ...commonArgs,
} as const;

export const exportCommand = defineCommand({
  meta: { name: "export", description: "What a run trained, as GGUF files for stock llama.cpp" },
  args,
  run: ({ args: given }) =>
    runCommand(given, async (signal) => {
      const { adapter, merged } = given;
      if (!adapter && !merged) {
        throw new ConfigError("is missing", {
          code: "config/bad-argument",
          subject: "--adapter or --merged",
          expected: "a file to write",
        });
      }
      const quantize = readQuantize(given.quantize, merged !== undefined);
      const options = { report: showEvents({ silent: given.json }), signal };
      const base = given.base === undefined ? null : await fetchModel(checkArgument("--base", given.base), options);
      const trained = await findTrained(checkArgument("--run", given.run), base, (text) =>
        process.stderr.write(`${text}\n`),
      );
      const result = await exportRun(trained, {
        adapter: adapter ? resolve(adapter) : null,
        merged: merged ? resolve(merged) : null,
        quantize,
      });
      if (given.json) return console.log(JSON.stringify(result));
      const after = result.step === null ? "" : `, after step ${result.step}`;
      if (result.adapter) console.log(`${result.adapter}: LoRA adapter${after}`);
      if (result.merged) {
        const { file, bytes, types, merged: count } = result.merged;
        const kinds = Object.entries(types).map(([type, n]) => `${n} ${type}`);
        console.log(
          `${file}: model${after}; ${count} weights changed, ${kinds.join(", ")}, ${(bytes / 1e6).toFixed(1)} MB`,
        );
      }
    }),
});

/** Before anything is loaded or written. @throws ConfigError */
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
