// The loop of rl-loop.ts with a lag of one step: each step's conversations go on while the one before is learned from, so that slow
// tools leave no core idle.   npm run ahead [steps] [model.gguf]
//
// `train({ lag: 1 })` does the same. What is trained does not depend on what ends first.
import { advantages, embeddedPolicy, loadPolicy, losses, rollOut } from "cria";
import { task } from "./task.js";

const steps = Number(process.argv[2] ?? 30);
const policy = await loadPolicy(process.argv[3] ?? embeddedPolicy, { lora: { rank: 16 }, contextSize: 248, seed: 1 });

/** Begins the conversations of a step, held by the policy as it is now, whatever it learns meanwhile. */
async function begin(rows: Awaited<ReturnType<typeof task.load>>, step: number) {
  const version = await policy.keepVersion();
  return { version, running: rollOut(version, task, rows, { n: 8, step }) };
}

async function learn({ version, running }: Awaited<ReturnType<typeof begin>>) {
  const groups = await running;
  const batch = groups.toBatch(advantages.grpo(groups));
  const [update] = await policy.train(batch, losses.ppo({ clip: 0.2 }), { learningRate: 1.5e-3 });
  await version.dispose();
  const gradient = update?.gradNorm.toFixed(3) ?? "none";
  console.log(`step ${policy.updates}: success ${groups.success?.toFixed(2)}, gradient ${gradient}`);
}

let underWay: Awaited<ReturnType<typeof begin>> | null = null;
let step = 0;
for await (const rows of task.batches(8, { steps, seed: 1 })) {
  const next = await begin(rows, ++step);
  if (underWay) await learn(underWay);
  underWay = next;
}
if (underWay) await learn(underWay);
await task.dispose();
await policy.dispose();
