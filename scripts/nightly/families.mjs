// `cria check-model` over a file of each family that trains: tiny random models, in Q8_0 beside F32, each with a published
// chat template of its family and the control tokens that it prints. Writes families.json and families.md beside this
// file; fails where a check falls short. It runs the built command, as users do: sources that are compiled as they load
// would count as memory. Five minutes after `npm run bootstrap`:
//   node --conditions=cria-source --import tsx scripts/nightly/families.mjs [--only gemma3]
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { TinyModels, textArchitectures } from "../../packages/engine/src/testing/index.ts";
import { readBundledTemplate } from "../../packages/tokenizer-delta/src/testing/llama-bundle.ts";
import { describeRun, root, writeReport } from "./learning.mjs";

const { values } = parseArgs({ options: { only: { type: "string" } } });

const own = (name) =>
  readFileSync(join(root, "packages", "tokenizer-delta", "fixtures", "tool-templates", `${name}.jinja`), "utf8");
const chatml = [];
const qwen = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"];
const granite = ["<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>", "<|tool_call|>"];

/** The template of each family, and the control tokens that it prints beside ChatML's; the first of `ends` ends a turn. */
const families = {
  llama: {
    template: readBundledTemplate("meta-llama-Llama-3.2-3B-Instruct"),
    tokens: ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
  },
  qwen2: { template: readBundledTemplate("Qwen-Qwen2.5-7B-Instruct"), tokens: qwen },
  qwen3: { template: readBundledTemplate("Qwen-Qwen3-0.6B"), tokens: qwen },
  gemma3: { template: own("functiongemma"), tokens: ["<start_of_turn>", "<end_of_turn>", "<bos>"] },
  smollm3: { template: own("smollm3"), tokens: [] },
  granite: { template: readBundledTemplate("ibm-granite-granite-3.3-2B-Instruct"), tokens: granite },
  granitehybrid: { template: own("granite-4"), tokens: granite },
  lfm2: { template: own("lfm2"), tokens: chatml },
  phi3: {
    template: own("phi-4-mini"),
    tokens: ["<|user|>", "<|assistant|>", "<|system|>", "<|end|>", "<|tool|>", "<|/tool|>"],
  },
  mistral3: { template: own("ministral-3"), tokens: ["<s>", "</s>", "[INST]", "[/INST]", "[TOOL_CALLS]", "[ARGS]"] },
  "gpt-oss": {
    template: readBundledTemplate("openai-gpt-oss-120b"),
    tokens: ["<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|return|>", "<|call|>"],
  },
  qwen3moe: { template: readBundledTemplate("Qwen-Qwen3-0.6B"), tokens: qwen },
  qwen35: { template: readBundledTemplate("Qwen3.5-4B"), tokens: qwen },
};

const models = new TinyModels();
const cli = join(root, "apps", "trainer", "dist", "cli.js");

/** The check's findings over a model with this template. */
async function check(architecture, type) {
  const { template, tokens } = families[architecture];
  const shape = {
    architecture,
    type,
    embedding: 64,
    feedForward: 64,
    embeddingScale: 0.25,
    seed: 5,
    contextLength: 4096,
  };
  const file = await models.write({ ...shape, controlTokens: tokens, chatTemplate: template });
  const program = [cli, "check-model", file, "--json"];
  // A check that falls short is an error of the program, which has told of it.
  const { stdout, stderr } = await promisify(execFile)(process.execPath, program, { cwd: root }).catch(
    (error) => error,
  );
  if (stdout === "") throw new Error(`${architecture}, ${type}: ${stderr}`);
  return JSON.parse(stdout).devices[0].findings;
}

const rows = [];
for (const architecture of textArchitectures.filter((name) => values.only === undefined || values.only === name)) {
  for (const type of ["f32", "q8_0"]) {
    const findings = await check(architecture, type);
    rows.push({ architecture, type, findings });
    const short = findings.filter(({ verdict }) => verdict !== "ok");
    console.log(
      `${architecture} ${type}: ${short.length === 0 ? "ok" : short.map(({ name, verdict, found }) => `${name}: ${verdict}: ${found}`).join("; ")}`,
    );
  }
}
await models.cleanUp();

// "not supported" is an answer (all weights of a quantized file, tools of a template that has none), no miss.
const misses = rows.flatMap(({ architecture, type, findings }) =>
  findings
    .filter(({ verdict }) => verdict === "falls short")
    .map(({ name, found }) => `${architecture}, ${type}: ${name}: ${found}`),
);
const names = [...new Set(rows.flatMap(({ findings }) => findings.map(({ name }) => name)))];
const cells = (name) =>
  rows.map(({ findings }) => findings.find((finding) => finding.name === name)?.verdict ?? "").join(" | ");
const run = describeRun();
const text = `# check-model over a file of each family

Tiny random models with a chat template of their family. ${run.date}, ${run.commit}, ${run.cpu}. families.json says what was found where it is not ok.

| check | ${rows.map(({ architecture, type }) => `${architecture} ${type.toUpperCase()}`).join(" | ")} |
| --- | ${rows.map(() => "---").join(" | ")} |
${names.map((name) => `| ${name} | ${cells(name)} |`).join("\n")}

Again: \`node --conditions=cria-source --import tsx scripts/nightly/families.mjs\`.
`;
if (values.only === undefined) {
  writeFileSync(join(import.meta.dirname, "families.md"), text);
  // Findings are recorded only for checks that are not ok.
  const short = rows.map(({ architecture, type, findings }) => ({
    ...{ architecture, type, checks: findings.length },
    others: findings
      .filter(({ verdict }) => verdict !== "ok")
      .map(({ name, verdict, found }) => ({ name, verdict, found })),
  }));
  writeReport("families.json", { ...run, rows: short, misses });
} else console.log(text);
