// Programs of a user who installed the packages, as text.

const names = ["core", "hub", "tokenizer-delta", "engine", "tools", "algorithms", "episodes", "rollout", "records"].map(
  (name) => `@cria/${name}`,
);
// Helpers of tokenizer-delta's tests need the optional node-llama-cpp; algorithms has none.
const testing = ["core", "engine", "tools", "rollout"].map((name) => `@cria/${name}/testing`);
const all = [...names, "cria", ...testing];

/** Generates a few greedy tokens, runs code in a sandbox's worker, writes and reads Parquet. */
const body = `  const model = await loadModel({ path: process.argv[2], threads: 1 });
  const prompt = new ChatTemplate(model.chatTemplate).render([{ role: "user", content: "What is 2+3?" }], { addGenerationPrompt: true });
  const { text } = await model.createSequence().generate(model.tokenize(prompt), { maxTokens: 8, temperature: 0 });
  await model.dispose();
  const sandbox = new JavaScriptSandbox();
  const outcome = await sandbox.run("console.log(6 * 7)");
  await sandbox.dispose();
  if (!JSON.stringify(outcome).includes("42")) throw new Error(JSON.stringify(outcome));
  const file = "rows.parquet";
  await writeParquet(file, { a: "int64" }, [{ a: 1 }, { a: 2 }]);
  if ((await readRecords(file)).length !== 2) throw new Error("Parquet");
`;

export const esmConsumer = `
import { loadModel } from "@cria/engine";
import { ChatTemplate } from "@cria/tokenizer-delta";
import { JavaScriptSandbox } from "@cria/tools/internal";
import { readRecords, writeParquet } from "@cria/rollout";
${all.map((name) => `if (Object.keys(await import("${name}")).length === 0) throw new Error("${name} exports nothing");`).join("\n")}
${body}
console.log(JSON.stringify({ text, build: "esm" }));
`;

export const cjsConsumer = `
const { loadModel } = require("@cria/engine");
const { ChatTemplate } = require("@cria/tokenizer-delta");
const { JavaScriptSandbox } = require("@cria/tools/internal");
const { readRecords, writeParquet } = require("@cria/rollout");
for (const name of ${JSON.stringify(all)}) if (Object.keys(require(name)).length === 0) throw new Error(name + " exports nothing");
async function main() {
${body}
  console.log(JSON.stringify({ text, build: require.resolve("@cria/engine").endsWith(".cjs") ? "cjs" : "esm" }));
}
main();
`;

/** Uses types of every package; `extension` mts or cts decides whether TypeScript sees the ESM or the CommonJS ones. */
export function typedConsumer(extension) {
  return `
import { CriaError, type LossFunction, type PolicyEngine } from "@cria/core";
import { type LlamaModel, loadModel } from "@cria/engine";
import { TinyModels } from "@cria/engine/testing";
import { ChatTemplate, DeltaTokenizer } from "@cria/tokenizer-delta";
import { BaseTool, type ToolResult } from "@cria/tools";
import { composePolicyLoss, defaultPolicyLoss } from "@cria/algorithms";
import { type DatasetRow, runRollouts } from "@cria/rollout";
import { loadConfig, trainConfigSchema } from "cria/config";

export class Tool extends BaseTool {
  async execute(_id: string, parameters: Record<string, unknown>): Promise<ToolResult> {
    return { response: { text: String(parameters["x"]) }, reward: 0, metrics: {} };
  }
}
export async function use(row: DatasetRow): Promise<number> {
  const model: LlamaModel = await loadModel({ path: "x.gguf" });
  const engine: PolicyEngine = model;
  // @ts-expect-error paths are text: types are there, not any
  await loadModel({ path: 1 });
  const loss: LossFunction = composePolicyLoss(defaultPolicyLoss);
  const tokenizer = DeltaTokenizer.forModel(model);
  return [engine, loss, tokenizer, row, runRollouts, loadConfig, trainConfigSchema, TinyModels, CriaError].length;
}
export const extension: "${extension}" = "${extension}";
`;
}
