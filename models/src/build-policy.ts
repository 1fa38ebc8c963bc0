// Rebuilds models/cria-tiny.gguf: corpus, vocabulary, random weights, then supervised training by `cria sft`.
import { spawnSync } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { writeGguf } from "@cria/engine";
import { trainVocabulary } from "./bpe.js";
import { makeCorpus } from "./corpus.js";
import { describeInitialModel } from "./initial-model.js";
import { calculatorSchema, chatTemplate } from "./policy-prompt.js";
import { renderPlainly } from "./render-plainly.js";

const root = join(import.meta.dirname, "..");
const work = join(root, "build");
await mkdir(work, { recursive: true });

const corpus = makeCorpus(40_000, 1);
await writeFile(
  join(work, "corpus.jsonl"),
  corpus.map((messages) => `${JSON.stringify({ messages, tools: [calculatorSchema] })}\n`).join(""),
);
const vocabulary = trainVocabulary(
  corpus.slice(0, 4000).map((messages) => renderPlainly(chatTemplate, messages, [calculatorSchema])),
  640,
);
await writeGguf(join(work, "initial.gguf"), describeInitialModel(vocabulary, 1));
console.log(`${corpus.length} conversations, ${vocabulary.tokens.length} tokens`);

const cria = join(root, "..", "apps", "trainer", "bin", "cria.mjs");
const { status } = spawnSync(process.execPath, [cria, "sft", join(root, "sft.yaml"), ...process.argv.slice(2)], {
  stdio: "inherit",
});
process.exit(status ?? 1);
