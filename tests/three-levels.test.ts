import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { advantages, defineTask, embeddedPolicy, loadPolicy, losses, rollOut, tool, train } from "cria";
import { fromConfig, toConfig } from "cria/config";
import { afterAll, expect, it } from "vitest";
import { z } from "zod";

const folder = mkdtempSync(join(tmpdir(), "cria-levels-"));
afterAll(() => rmSync(folder, { recursive: true }));

const SYSTEM = "You solve problems. Use the tool to compute, then answer with ####.";
const rows = Array.from({ length: 12 }, (_, i) => ({
  question: `Emma has ${50 + i} stamps and loses ${10 + 2 * i}. How many stamps are left?`,
  truth: String(40 - i),
}));
const calculator = tool({
  name: "calculator",
  description: "Subtracts.",
  inputSchema: z.object({ expression: z.string() }),
  execute: ({ expression }) => String(expression.split("-").reduce((a, b) => String(Number(a) - Number(b)))),
});
const limits = { maxTurns: 3, maxPromptLength: 120, maxResponseLength: 128 };
const task = defineTask({
  rows,
  system: SYSTEM,
  tools: [calculator],
  reward: ({ answer, row }) => answer === row.truth,
  ...limits,
});
const common = { steps: 3, batchSize: 4, n: 4, learningRate: 2e-3, seed: 5, threads: 1 };

const hash = (file: string) => createHash("sha256").update(readFileSync(file)).digest("hex");

/** The same training as files for `cria train config.yaml`. */
function writeConfig(): string {
  mkdirSync(join(folder, "yaml"));
  const write = (name: string, text: string) => writeFileSync(join(folder, "yaml", name), text);
  const lines = rows.map(({ question, truth }) => {
    const prompt = [
      { role: "system", content: SYSTEM },
      { role: "user", content: question },
    ];
    return JSON.stringify({ data_source: "task", prompt, reward_model: { ground_truth: truth } });
  });
  write("rows.jsonl", `${lines.join("\n")}\n`);
  write(
    "tool.mjs",
    `export const calculator = {
      name: "calculator",
      ${""}schema: ${JSON.stringify(calculator.schema)},
      async create() { return {}; },
      async execute(_, { expression }) {
        return { response: { text: String(expression.split("-").reduce((a, b) => String(Number(a) - Number(b)))) } };
      },
      async calcReward() { return 0; },
      async release() {},
    };\n`,
  );
  write("tools.yaml", "tools: [{ class_name: ./tool.mjs#calculator }]\n");
  write(
    "reward.mjs",
    `export function score(source, text, truth, { messages }) {
      const last = messages.findLast(({ role }) => role === "assistant")?.content ?? "";
      return last.slice(last.lastIndexOf("####") + 4).trim() === truth ? 1 : 0;
    }\n`,
  );
  const config = {
    actor_rollout_ref: {
      model: { path: embeddedPolicy, lora_rank: 16 },
      actor: { optim: { lr: 2e-3 }, ppo_mini_batch_size: 4 },
      rollout: {
        n: 4,
        seed: 5,
        prompt_length: 120,
        response_length: 128,
        multi_turn: { max_assistant_turns: 3, tool_config_path: "tools.yaml" },
      },
    },
    data: { train_files: "rows.jsonl", train_batch_size: 4, max_prompt_length: 120, max_response_length: 128, seed: 5 },
    custom_reward_function: { path: "reward.mjs", name: "score" },
    trainer: { default_local_dir: join(folder, "runs-yaml"), total_training_steps: 3, threads: 1 },
  };
  write("config.yaml", JSON.stringify(config));
  return join(folder, "yaml", "config.yaml");
}

it("one call, an own loop, and a config train the same adapter, bit for bit", async () => {
  const run = train({ model: embeddedPolicy, task, folder: join(folder, "runs"), ...common });
  const rewards: (number | null)[] = [];
  for await (const { reward } of run) rewards.push(reward);
  const { adapter, folder: runFolder } = await run;
  expect(rewards).toHaveLength(3);
  expect(runFolder).toBe(join(folder, "runs", "cria", "default"));

  const policy = await loadPolicy(embeddedPolicy, { lora: { rank: 16 }, contextSize: 248, seed: 5, threads: 1 });
  const own: (number | null)[] = [];
  for await (const batchRows of task.batches(4, { steps: 3, seed: 5 })) {
    const groups = await rollOut(policy, task, batchRows, { n: 4 });
    own.push(groups.reward);
    await policy.train(groups.toBatch(advantages.grpo(groups)), losses.ppo({ clip: 0.2 }), { learningRate: 2e-3 });
  }
  const saved = join(folder, "own.gguf");
  await policy.save(saved);
  await task.dispose();
  await policy.dispose();

  const { adapter: ofConfig } = await train(fromConfig(writeConfig()));
  expect(own).toEqual(rewards);
  expect(new Set(own).size).toBeGreaterThan(1);
  expect(hash(saved)).toBe(hash(adapter!));
  expect(hash(ofConfig!)).toBe(hash(adapter!));
});

it("toConfig writes parts that have paths, and names those without", () => {
  const byPath = defineTask({ rows: "rows.jsonl", reward: "./reward.mjs#score", ...limits });
  const config = toConfig({
    model: "m.gguf",
    task: byPath,
    loss: losses.ppo({ clip: { low: 0.1, high: 0.3 } }),
    ...common,
  });
  expect(config).toMatchObject({
    actor_rollout_ref: {
      model: { path: join(process.cwd(), "m.gguf"), lora_rank: 16 },
      actor: { clip_ratio_low: 0.1, clip_ratio_high: 0.3, policy_loss: { loss_mode: "vanilla" } },
      rollout: { n: 4, seed: 5, response_length: 128 },
    },
    custom_reward_function: { path: join(process.cwd(), "reward.mjs"), name: "score" },
    trainer: { total_training_steps: 3 },
  });
  const file = join(folder, "written.yaml");
  writeFileSync(file, JSON.stringify(config));
  expect(toConfig(fromConfig(file))).toMatchObject(config);
  expect(() => toConfig({ model: "m.gguf", task, advantages: (inputs) => inputs as never })).toThrow(
    expect.objectContaining({
      code: "config/in-memory",
      subject: "task.rows, task.reward, task.system, task.tools[0] (calculator), advantages",
    }),
  );
});
