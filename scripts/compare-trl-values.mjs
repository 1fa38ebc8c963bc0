// A published model: conversations that Cria holds, by TRL's whole loss with transformers in float64. Prints how far
// loss, advantages and gradients of the adapter are from ours; fails above the bounds. A minute of one core.
//   node scripts/fetch-real-model.mjs --python
//   node --conditions=cria-source --import tsx scripts/compare-trl-values.mjs [--model FILE] [--threads 1]
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { fillAdapter } from "../apps/trainer/src/check-model/sample-text.ts";
import { advantageEstimators, composePolicyLoss, losses } from "../packages/algorithms/src/index.ts";
import { exportModel } from "../packages/engine/src/index.ts";
import { defineTask, loadPolicy, rollOut } from "../packages/trainer/src/index.ts";
import { writeTensors } from "./nightly/real-model/write-tensors.mjs";
import { missingModel, realModel, realPython } from "./real-model.mjs";

const { values } = parseArgs({ options: { model: { type: "string" }, threads: { type: "string", default: "1" } } });
if (missingModel) throw new Error(missingModel);
// Advantages differ by the constant that is added to a deviation; both losses and gradients use ours.
const bounds = { loss: 1e-6, advantages: 1e-3, gradients: 1e-4 };
const settings = {
  ...{ loss_type: "dapo", num_iterations: 2, epsilon: 0.2, epsilon_high: 0.28, delta: 3, beta: 0.1 },
  ...{ use_bias_correction_kl: false, entropy_coef: 0.01, max_completion_length: 64 },
};
const loss = {
  ...losses.ppo({ clip: { low: 0.2, high: 0.28 }, dualClip: 3, kl: { coefficient: 0.1, type: "k3" }, entropy: 0.01 }),
};

const folder = mkdtempSync(join(tmpdir(), "cria-trl-"));
try {
  const path = values.model ?? join(folder, "F32.gguf");
  if (!values.model) await exportModel({ base: realModel.path, output: path, quantize: "F32" });
  const lora = { rank: 16, alpha: 32 };
  const policy = await loadPolicy(path, { lora, contextSize: 256, maxSequences: 8, threads: Number(values.threads) });
  const { engine } = policy;
  const questions = ["What is the capital of France? Say it in one word.", "Name one animal that swims."];
  const task = defineTask({
    rows: questions.map((question) => ({ question })),
    prompt: ({ question }) => question,
    // A user with a further question: text in the middle that is not trained on.
    interaction: () => "Are you sure? Say it in other words.",
    reward: ({ text }) => text.length % 7,
    maxTurns: 3,
    maxPromptLength: 64,
    maxResponseLength: 64,
  });
  const rows = (await task.load()).slice(0, 2);
  const groups = await rollOut(policy, task, rows, { n: 4, seed: 1 });
  const trajectories = [...groups].flat();
  // The policy moves away from the one that sampled.
  const ranges = trajectories.map(({ tokenIds }) => ({ tokenIds }));
  const reference = await engine.score(ranges, { adapter: false });
  await fillAdapter(engine, 0.01);
  const sampled = trajectories.map(({ responseMask }) => responseMask.reduce((sum, bit) => sum + bit, 0));
  const offsets = Int32Array.from([0, ...trajectories.map((_, i) => i + 1)]);
  const { advantages } = advantageEstimators.get("grpo")({
    tokenLevelRewards: trajectories.map(({ reward }) => reward),
    responseMask: trajectories.map(() => 1),
    offsets,
    groups: trajectories.map(({ uid }) => uid),
  });
  const conversations = trajectories.map((t, i) => ({
    tokens: [...t.tokenIds],
    promptLength: t.promptLength,
    mask: [...t.responseMask],
    oldLogprobs: [...t.rolloutLogprobs],
    refLogprobs: [...reference[i].logprobs],
  }));
  const batch = conversations.map(({ tokens, mask, oldLogprobs, refLogprobs }, i) => ({
    tokenIds: tokens,
    lossMask: mask,
    columns: { oldLogprobs, refLogprobs, advantages: mask.map((bit) => bit * advantages[i]) },
  }));
  const ours = await engine.train(batch, composePolicyLoss(loss), null);
  const given = join(folder, "ours");
  await writeTensors(engine, given, ["gradient", "value"]);
  await policy.dispose();
  await task.dispose();
  const request = {
    ...{ model: path, ours: given, scale: lora.alpha / lora.rank, settings, group: 4, conversations },
    rewards: trajectories.map(({ reward }) => reward),
    advantages: [...advantages],
  };
  const script = join(import.meta.dirname, "..", "packages", "algorithms", "fixtures", "trl_loss_of_model.py");
  const answer = execFileSync(realPython, ["-W", "ignore", script], {
    input: JSON.stringify(request),
    maxBuffer: 1 << 30,
    env: { ...process.env, OMP_NUM_THREADS: values.threads },
  });
  const theirs = JSON.parse(answer.toString());
  const apart = {
    loss: Math.abs(ours.loss - theirs.loss),
    advantages: Math.max(...theirs.advantages.map((advantage, i) => Math.abs(advantage - advantages[i]))),
    gradients: Math.max(...theirs.tensors.map(({ error }) => error)),
  };
  const report = {
    ...{ trl: theirs.trl, torch: theirs.torch, transformers: theirs.transformers, settings },
    conversations: conversations.length,
    tokens: conversations.reduce((sum, { tokens }) => sum + tokens.length, 0),
    sampled: sampled.reduce((a, b) => a + b, 0),
    ...{ rewards: request.rewards, loss: { ours: ours.loss, trl: theirs.loss } },
    metrics: { ours: ours.metrics, trl: theirs.metrics },
    ...{
      tensors: theirs.tensors.length,
      leastCosine: Math.min(...theirs.tensors.map(({ cosine }) => cosine)),
      apart,
      bounds,
    },
  };
  console.log(JSON.stringify(report, null, 2));
  for (const [what, bound] of Object.entries(bounds))
    if (!(apart[what] <= bound)) {
      console.error(`${what}: ${apart[what]} apart, at most ${bound} expected`);
      process.exitCode = 1;
    }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
