import { copyFileSync, mkdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type ChatMessage, runSft } from "cria";
import { loadConfig, sftConfigSchema } from "cria/config";
import { cached } from "../../cache.js";
import { findRealModel, writeRealModel } from "../../real-model.js";
import { THREADS } from "../../settings.js";
import { toolChoiceFolder as example, toolChoiceByGrpo } from "../../tool-choice.js";
import { taskFromConfig } from "./from-config.js";
import { writeLines } from "./make-policy.js";

const needs = ["one", "two", "none"] as const;

/** As examples/tool-choice/generator.ts says it. */
interface Generator {
  makeQuestion(seed: number, split: "train" | "seen" | "unseen", need: (typeof needs)[number]): object;
  makeRow(question: object): { extra_info: object };
  makeDemonstration(question: object): ChatMessage[];
}

/** Numbers of the first question of each file. */
const first = { demonstrations: 0, shown: 500_000, train: 1_000_000, seen: 2_000_000, unseen: 3_000_000 };

const loadGenerator = () => import(pathToFileURL(join(example, "generator.ts")).href) as Promise<Generator>;

async function makeQuestions(part: keyof typeof first, count: number): Promise<object[]> {
  const { makeQuestion } = await loadGenerator();
  const split = part === "seen" || part === "unseen" ? part : "train";
  return Array.from({ length: count }, (_, i) => makeQuestion(first[part] + i, split, needs[i % needs.length]!));
}

async function demonstrate(part: keyof typeof first, count: number) {
  const { makeDemonstration } = await loadGenerator();
  const questions = await makeQuestions(part, count);
  return questions.map((question) => ({ messages: makeDemonstration(question), tools: [] }));
}

/** Rows, each with a right conversation as the hint of a teacher. */
async function makeRows(part: keyof typeof first, count: number): Promise<object[]> {
  const { makeRow, makeDemonstration } = await loadGenerator();
  return (await makeQuestions(part, count)).map((question) => {
    const said = makeDemonstration(question).filter(({ role }) => role === "assistant");
    const hint = `Say this:\n${said.map(({ content }) => content).join("\n")}`;
    const row = makeRow(question);
    return { ...row, extra_info: { ...row.extra_info, hint } };
  });
}

/** Teaches a new adapter as the example does, with other settings. */
async function demonstrateTo(adapter: string, count: number, settings: readonly string[]): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "cria-demonstrations-"));
  try {
    const demonstrations = join(folder, "demonstrations.jsonl");
    writeLines(demonstrations, await demonstrate("demonstrations", count));
    const { values } = loadConfig(sftConfigSchema, join(example, "sft.yaml"), [
      ...[`model.path=${await writeRealModel("Q8_0")}`, `data.train_files=${demonstrations}`],
      ...[`trainer.default_local_dir=${join(folder, "runs")}`, `trainer.output_path=${adapter}`],
      ...["trainer.logger=[file]", ...settings],
    ]);
    await runSft(values, example);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * SmolLM2-135M-Instruct after 50 steps of demonstrations at half of the example's rate, which leave most of the
 * rows to learn: which tool, if any, and with which arguments.
 */
export const toolChoice = taskFromConfig({
  name: "tool choice with a published model",
  config: join(example, "config.yaml"),
  settings: [
    ...toolChoiceByGrpo,
    ...["data.train_batch_size=4", "actor_rollout_ref.actor.ppo_mini_batch_size=4", "data.val_max_samples=64"],
  ],
  threads: THREADS,
  tokens: 30_000,
  steps: 60,
  every: 5000,
  teacher: {
    // Demonstrations seen once each: four times as many as the policy's.
    write: async (adapter) => {
      const taught = await cached("learning-tool-choice-teacher-1", async (output) => {
        mkdirSync(output, { recursive: true });
        await demonstrateTo(join(output, "sft.gguf"), 1920, ["trainer.total_training_steps=120"]);
      });
      copyFileSync(join(taught, "sft.gguf"), adapter);
    },
  },
  methods: [
    "16 examples beside the rewards (0.1)",
    "teacher alone (forward KL, 32 tokens)",
    "teacher alone (k1 as advantage)",
    "the policy with the answer as a hint (forward KL, 32 tokens)",
  ],
  findMissing: async () => (await findRealModel()).missingModel,
  examples: (count) => demonstrate("shown", count),
  prepare: async () => {
    const model = await writeRealModel("Q8_0");
    const folder = await cached("learning-tool-choice-4", async (output) => {
      mkdirSync(output, { recursive: true });
      writeLines(join(output, "train.jsonl"), await makeRows("train", 2000));
      writeLines(join(output, "val.jsonl"), [...(await makeRows("seen", 32)), ...(await makeRows("unseen", 32))]);
      await demonstrateTo(join(output, "sft.gguf"), 480, ["trainer.total_training_steps=50", "optim.lr=5e-4"]);
    });
    return [
      `actor_rollout_ref.model.path=${model}`,
      `actor_rollout_ref.model.lora_adapter_path=${join(folder, "sft.gguf")}`,
      `data.train_files=${join(folder, "train.jsonl")}`,
      `data.val_files=${join(folder, "val.jsonl")}`,
    ];
  },
});
