// Rebuilds models/cria-tiny.gguf: corpora, vocabulary, random weights, then two stages of supervised training by
// `cria sft`. Arguments (trainer.threads=1, ...) go to both stages.
import { spawnSync } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ChatMessage } from "@cria/core";
import { writeGguf } from "@cria/engine";
import { ChatTemplate } from "@cria/tokenizer-delta";
import { trainVocabulary } from "./bpe.js";
import { makeCorpus } from "./corpus.js";
import { firstNoise, secondNoise } from "./demonstrations.js";
import { describeInitialModel } from "./initial-model.js";
import { calculatorSchema, chatTemplate } from "./policy-prompt.js";

const root = join(import.meta.dirname, "..");
const work = join(root, "build");
await mkdir(work, { recursive: true });

async function writeCorpus(name: string, corpus: ChatMessage[][]): Promise<void> {
  const lines = corpus.map((messages) => `${JSON.stringify({ messages, tools: [calculatorSchema] })}\n`);
  await writeFile(join(work, name), lines.join(""));
}

function runSft(config: string): void {
  const cria = join(root, "..", "apps", "trainer", "bin", "cria.mjs");
  const { status } = spawnSync(process.execPath, [cria, "sft", join(root, config), ...process.argv.slice(2)], {
    stdio: "inherit",
  });
  if (status !== 0) process.exit(status ?? 1);
}

const first = makeCorpus(96_000, 1, firstNoise);
await writeCorpus("corpus-1.jsonl", first);
await writeCorpus("corpus-2.jsonl", makeCorpus(19_200, 2, secondNoise));
const template = new ChatTemplate(chatTemplate);
const texts = first.slice(0, 4000).map((messages) => template.render(messages, { tools: [calculatorSchema] }));
await writeGguf(join(work, "initial.gguf"), describeInitialModel(trainVocabulary(texts, 640), 1));
runSft("sft-1.yaml");
runSft("sft-2.yaml");
