// Reinforcement learning as a loop of one's own: GRPO with PPO's loss.   npm start [steps] [model.gguf]
//
// `train` (train.ts) does the same with a run folder, validation, checkpoints and resumption around it.
import { advantages, embeddedPolicy, loadPolicy, losses, rollOut } from "cria";
import { task } from "./task.js";

const steps = Number(process.argv[2] ?? 30);
const policy = await loadPolicy(process.argv[3] ?? embeddedPolicy, { lora: { rank: 16 }, contextSize: 248, seed: 1 });
for await (const rows of task.batches(8, { steps, seed: 1 })) {
  // Eight conversations of each problem: tools run, rewards are given.
  const groups = await rollOut(policy, task, rows, { n: 8 });
  // Each conversation against the others of its problem; failed ones are left out.
  const batch = groups.toBatch(advantages.grpo(groups));
  const [update] = await policy.train(batch, losses.ppo({ clip: 0.2 }), { learningRate: 1.5e-3 });
  const gradient = update?.gradNorm.toFixed(3) ?? "none";
  console.log(`step ${policy.updates}: success ${groups.success?.toFixed(2)}, gradient ${gradient}`);
}
await task.dispose();
await policy.dispose();
