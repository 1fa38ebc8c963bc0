// Eight conversations of a model with the tool of task.ts, and the reward of each.   npm start [model.gguf]
import { embeddedPolicy, loadPolicy, rollOut } from "cria";
import { task } from "./task.js";

const policy = await loadPolicy(process.argv[2] ?? embeddedPolicy, { threads: 1, seed: 3 });
const { trajectories } = await rollOut(policy, task, await task.load(), { n: 8 });
for (const { messages, reward, toolRewards } of trajectories) {
  const said = messages.slice(2).map(({ role, content }) => `${role}: ${content}`);
  const steps = toolRewards.map(({ value }) => value).join(", ") || "none";
  console.log(`${said.join("\n")}\n-> reward ${reward}, step rewards: ${steps}\n`);
}
await task.dispose();
await policy.dispose();
