import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { embeddedPolicy, train } from "cria";
import { fromConfig } from "cria/config";
import { afterAll, expect, it } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "cria-python-"));
afterAll(() => rmSync(folder, { recursive: true }));

const STEPS = 2;
const BATCH = 2;
const N = 4;

/** @param report how the agent tells its reward: "post" or "print". */
function writeConfig(name: string, report: string): string {
  const write = (file: string, text: string) => writeFileSync(join(folder, file), text);
  const rows = Array.from({ length: STEPS * BATCH }, (_, i) => ({
    data_source: "words",
    prompt: [
      { role: "system", content: "You solve problems. Use the tool to compute, then answer with ####." },
      { role: "user", content: `Emma has ${50 + i} stamps and loses ${10 + 2 * i}. How many stamps are left?` },
    ],
    reward_model: { ground_truth: String(40 - i) },
    extra_info: { report },
  }));
  write(`${name}.jsonl`, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  const command = ["python3", join(import.meta.dirname, "agent.py")];
  write("loops.yaml", JSON.stringify({ agent_loops: [{ name: "python", command }] }));
  const config = {
    actor_rollout_ref: {
      model: { path: embeddedPolicy, lora_rank: 16 },
      actor: { optim: { lr: 2e-3 }, ppo_mini_batch_size: BATCH },
      rollout: {
        n: N,
        prompt_length: 200,
        response_length: 192,
        multi_turn: { max_assistant_turns: 3 },
        agent: { agent_loop_config_path: "loops.yaml", default_agent_loop: "python" },
      },
    },
    data: { train_files: `${name}.jsonl`, train_batch_size: BATCH, max_prompt_length: 200, max_response_length: 192 },
    trainer: {
      default_local_dir: join(folder, "runs"),
      experiment_name: name,
      total_training_steps: STEPS,
      threads: 1,
    },
  };
  write(`${name}.yaml`, JSON.stringify(config));
  return join(folder, `${name}.yaml`);
}

/** Trains, and reads the trained conversations by step, prompt and sample. */
async function trainByProgram(report: string) {
  const run = train(fromConfig(writeConfig(report, report)));
  const rewards: (number | null)[] = [];
  for await (const { reward } of run) rewards.push(reward);
  const { adapter, folder: runFolder } = await run;
  const lines = Array.from({ length: STEPS }, (_, i) =>
    readFileSync(join(runFolder, "rollouts", `${i + 1}.jsonl`), "utf8"),
  )
    .flatMap((text) => text.trim().split("\n"))
    .map((line) => JSON.parse(line));
  return { rewards, adapter: readFileSync(adapter!), lines };
}

interface Line {
  error: string | null;
  score: number;
  ground_truth: string;
  messages: { role: string; content: string; tool_calls?: object[] }[];
  extra: { asked?: number };
  metrics: { chat_calls: number; chat_roots: number; chat_branches: number };
}

it("an agent in Python trains, with each way of giving its reward, to equal bits", async () => {
  const posted = await trainByProgram("post");
  const lines: Line[] = posted.lines;
  expect(lines).toHaveLength(STEPS * BATCH * N);
  for (const { error, score, ground_truth, messages, metrics } of lines) {
    expect(error).toBeNull();
    expect(score).toBe(Number(messages.at(-1)!.content.split("####").at(-1)!.trim() === ground_truth));
    // Each episode is one conversation that kept its sampled tokens.
    expect(metrics).toMatchObject({ chat_roots: 1, chat_branches: 0 });
    expect(metrics.chat_calls).toBe(messages.filter(({ role }) => role === "assistant").length);
  }
  expect(new Set(lines.map(({ score }) => score))).toEqual(new Set([0, 1]));
  const answers = lines.flatMap(({ messages }) => messages.filter(({ role }) => role === "tool"));
  expect(answers.some(({ content }) => /^\d+$/.test(content))).toBe(true);

  const printed = await trainByProgram("print");
  expect(printed.lines.every(({ extra, metrics }: Line) => extra.asked === metrics.chat_calls)).toBe(true);
  expect(printed.rewards).toEqual(posted.rewards);
  expect(printed.adapter.equals(posted.adapter)).toBe(true);
});
