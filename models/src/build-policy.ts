// Rebuilds models/cria-tiny.gguf: corpora, vocabulary, random weights, then two stages of supervised training by
// `cria sft`. Arguments (trainer.threads=1, ...) go to both stages. Run again after a kill, it goes on where it was.
import { spawnSync } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { writeGguf } from "@cria/engine";
import { ChatTemplate } from "@cria/tokenizer-delta";
import { trainVocabulary } from "./bpe.js";
import { type Dialog, firstStage, makeCorpus, secondStage } from "./corpus.js";
import { describeInitialModel } from "./initial-model.js";
import { chatTemplate } from "./policy-prompt.js";

const root = join(import.meta.dirname, "..");
const work = join(root, "build");
await mkdir(work, { recursive: true });

async function writeCorpus(name: string, corpus: readonly Dialog[]): Promise<void> {
  await writeFile(join(work, name), corpus.map((dialog) => `${JSON.stringify(dialog)}\n`).join(""));
}

function runSft(config: string): void {
  const cria = join(root, "..", "apps", "trainer", "bin", "cria.mjs");
  const runs = `trainer.default_local_dir=${join(work, "runs")}`;
  const { status } = spawnSync(process.execPath, [cria, "sft", join(root, config), runs, ...process.argv.slice(2)], {
    stdio: "inherit",
  });
  if (status !== 0) process.exit(status ?? 1);
}

const first = makeCorpus(72_000, 1, firstStage);
await writeCorpus("corpus-1.jsonl", first);
await writeCorpus("corpus-2.jsonl", makeCorpus(20_000, 2, secondStage));
const template = new ChatTemplate(chatTemplate);
const texts = first.slice(0, 4000).map(({ messages, tools }) => template.render(messages, { tools }));
await writeGguf(join(work, "initial.gguf"), describeInitialModel(trainVocabulary(texts, 640), 1));
runSft("sft-1.yaml");
runSft("sft-2.yaml");
