import { mkdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type ChatMessage, runSft } from "cria";
import { loadConfig, sftConfigSchema } from "cria/config";
import { cached } from "./cache.js";
import { writeLines } from "./lines.js";
import { writeRealModel } from "./real-model.js";

export const toolChoiceFolder = join(import.meta.dirname, "..", "examples", "tool-choice");

/** Settings that turn the example's config into plain GRPO, by a reward that right calls are a part of. */
export const toolChoiceByGrpo = [
  "algorithm.adv_estimator=grpo",
  "custom_reward_function.name=score",
  "actor_rollout_ref.actor.policy_loss.loss_mode=vanilla",
  "actor_rollout_ref.actor.optim.lr=1e-4",
  "actor_rollout_ref.actor.optim.lr_scheduler_type=constant",
];

const needs = ["one", "two", "none"] as const;

/** As examples/tool-choice/generator.ts says it. */
interface Generator {
  makeQuestion(seed: number, split: "train" | "seen" | "unseen", need: (typeof needs)[number]): object;
  makeRow(question: object): object;
  makeDemonstration(question: object): ChatMessage[];
}

/** Numbers of the first question of each file. */
const first = { demonstrations: 0, shown: 500_000, train: 1_000_000, seen: 2_000_000, unseen: 3_000_000 };

const loadGenerator = () => import(pathToFileURL(join(toolChoiceFolder, "generator.ts")).href) as Promise<Generator>;

async function makeQuestions(part: keyof typeof first, count: number): Promise<object[]> {
  const { makeQuestion } = await loadGenerator();
  const split = part === "seen" || part === "unseen" ? part : "train";
  return Array.from({ length: count }, (_, i) => makeQuestion(first[part] + i, split, needs[i % needs.length]!));
}

export async function demonstrateToolChoice(part: keyof typeof first, count: number) {
  const { makeDemonstration } = await loadGenerator();
  const questions = await makeQuestions(part, count);
  return questions.map((question) => ({ messages: makeDemonstration(question), tools: [] }));
}

async function makeRows(part: keyof typeof first, count: number): Promise<object[]> {
  const { makeRow } = await loadGenerator();
  return (await makeQuestions(part, count)).map(makeRow);
}

/** Teaches a new adapter as the example does, with other settings. */
export async function teachToolChoice(adapter: string, count: number, settings: readonly string[]): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "cria-demonstrations-"));
  try {
    const demonstrations = join(folder, "demonstrations.jsonl");
    writeLines(demonstrations, await demonstrateToolChoice("demonstrations", count));
    const { values } = loadConfig(sftConfigSchema, join(toolChoiceFolder, "sft.yaml"), [
      ...[`model.path=${await writeRealModel("Q8_0")}`, `data.train_files=${demonstrations}`],
      ...[`trainer.default_local_dir=${join(folder, "runs")}`, `trainer.output_path=${adapter}`],
      ...["trainer.logger=[file]", ...settings],
    ]);
    await runSft(values, toolChoiceFolder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * A folder with the model after 50 steps of demonstrations at half of the example's rate (sft.gguf, an adapter over the
 * model in Q8_0), which leave most of the rows to learn, and with rows of training and held-out ones (train.jsonl,
 * val.jsonl).
 */
export const prepareToolChoice = (): Promise<string> =>
  cached("tool-choice-5", async (output) => {
    mkdirSync(output, { recursive: true });
    writeLines(join(output, "train.jsonl"), await makeRows("train", 2000));
    writeLines(join(output, "val.jsonl"), [...(await makeRows("seen", 32)), ...(await makeRows("unseen", 32))]);
    await teachToolChoice(join(output, "sft.gguf"), 480, ["trainer.total_training_steps=50", "optim.lr=5e-4"]);
  });
