// A published model: conversations that Cria holds, by TRL's whole loss and by verl's, with transformers in float64. Prints
// how far loss, advantages and gradients of the adapter are from ours, and writes them to peer-losses.json beside this file; fails
// above the bounds. Two minutes of one core.
//   node scripts/fetch-real-model.mjs --python
//   node --conditions=cria-source --import tsx scripts/nightly/peer-losses.mjs [--model FILE] [--threads 1]
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { fillAdapter } from "../../apps/trainer/src/check-model/sample-text.ts";
import { advantageEstimators, composePolicyLoss, losses } from "../../packages/algorithms/src/index.ts";
import { defineTask, loadPolicy, rollOut } from "../../packages/trainer/src/index.ts";
import { getRealFile } from "../real-file.mjs";
import { missingModel, realModel, realPython } from "../real-model.mjs";
import { describeRun } from "./learning.mjs";
import { writeTensors } from "./real-model/write-tensors.mjs";

const { values } = parseArgs({ options: { model: { type: "string" }, threads: { type: "string", default: "1" } } });
if (missingModel) throw new Error(missingModel);
/**
 * Their words for our settings, and how far numbers may be apart. TRL adds 1e-4 to a group's deviation, where we and
 * verl add 1e-6; all losses and gradients are of our advantages.
 */
const peers = {
  trl: {
    script: "trl_loss_of_model.py",
    settings: {
      ...{ loss_type: "dapo", num_iterations: 2, epsilon: 0.2, epsilon_high: 0.28, delta: 3, beta: 0.1 },
      ...{ use_bias_correction_kl: false, entropy_coef: 0.01, max_completion_length: 64 },
    },
    bounds: { loss: 1e-6, advantages: 1e-3, gradients: 1e-4 },
  },
  verl: {
    script: "verl_loss_of_model.py",
    settings: {
      ...{ kl_type: "low_var_kl", kl_coef: 0.1, entropy_coeff: 0.01 },
      parameters: { clip_ratio_low: 0.2, clip_ratio_high: 0.28, clip_ratio_c: 3 },
    },
    bounds: { loss: 1e-6, advantages: 1e-5, gradients: 1e-4 },
  },
};
const loss = {
  ...losses.ppo({ clip: { low: 0.2, high: 0.28 }, dualClip: 3, kl: { coefficient: 0.1, type: "k3" }, entropy: 0.01 }),
};

const fixtures = join(import.meta.dirname, "..", "..", "packages", "algorithms", "fixtures");
const folder = mkdtempSync(join(tmpdir(), "cria-peer-losses-"));
try {
  const path = values.model ?? (await getRealFile("F32"));
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
  await fillAdapter(/** @type {import("../../packages/engine/src/index.ts").LlamaModel} */ (engine), 0.01);
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
    ...{ model: path, ours: given, scale: lora.alpha / lora.rank, group: 4, conversations },
    rewards: trajectories.map(({ reward }) => reward),
    advantages: [...advantages],
  };
  const report = {
    ...describeRun(),
    model: realModel.sha256,
    conversations: conversations.length,
    tokens: conversations.reduce((sum, { tokens }) => sum + tokens.length, 0),
    sampled: sampled.reduce((a, b) => a + b, 0),
    ...{ rewards: request.rewards, loss: ours.loss, metrics: ours.metrics, peers: {} },
  };
  for (const [name, { script, settings, bounds }] of Object.entries(peers)) {
    const answer = execFileSync(realPython, ["-W", "ignore", join(fixtures, script)], {
      input: JSON.stringify({ ...request, settings }),
      maxBuffer: 1 << 30,
      env: { ...process.env, OMP_NUM_THREADS: values.threads },
    });
    const { loss: theirs, advantages: own, metrics, tensors, ...versions } = JSON.parse(answer.toString());
    const apart = {
      loss: Math.abs(ours.loss - theirs),
      advantages: Math.max(...own.map((advantage, i) => Math.abs(advantage - advantages[i]))),
      gradients: Math.max(...tensors.map(({ error }) => error)),
    };
    const leastCosine = Math.min(...tensors.map(({ cosine }) => cosine));
    report.peers[name] = {
      ...versions,
      settings,
      loss: theirs,
      metrics,
      tensors: tensors.length,
      leastCosine,
      apart,
      bounds,
    };
    for (const [what, bound] of Object.entries(bounds))
      if (!(apart[what] <= bound)) {
        console.error(`${name}, ${what}: ${apart[what]} apart, at most ${bound} expected`);
        process.exitCode = 1;
      }
  }
  console.log(JSON.stringify(report, null, 2));
  writeFileSync(join(import.meta.dirname, "peer-losses.json"), `${JSON.stringify(report, null, 2)}\n`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
