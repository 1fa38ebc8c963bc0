// One policy plays both players of Nim, and learns from both, with one adapter or with one for each player.
//   npx tsx examples/self-play/self-play.ts [seed] [steps] [one|each]
import { embeddedPolicy, train } from "cria";
import { type NimRow, nim } from "./nim.js";

const [seed, steps] = [Number(process.argv[2] ?? 1), Number(process.argv[3] ?? 60)];
const isEach = process.argv[4] === "each";
const run = train({
  model: embeddedPolicy,
  rows: Array.from({ length: 64 }, (_, i): NimRow => ({ stones: 1 + (i % 7) })),
  // From here the first player wins, whatever the other one does.
  validation: {
    rows: [4, 5, 7].map((stones): NimRow => ({ stones, opponent: "best" })),
    every: 10,
    n: 16,
    temperature: 1,
  },
  agent: nim,
  advantages: "rae",
  // A baseline of each role takes the place of a group's mean: one game of each row is enough.
  n: 1,
  batchSize: 64,
  steps,
  seed,
  learningRate: 1.5e-3,
  lora: isEach ? { roles: ["first", "second"] } : {},
  name: `self-play-${seed}${isEach ? "-each" : ""}`,
  config: {
    data: { max_prompt_length: 64, max_response_length: 256 },
    actor_rollout_ref: { actor: { entropy_coeff: 0.01 } },
  },
});
for await (const { step, heldOut, metrics } of run) {
  const baselines = ["first", "second"].map((role) => metrics[`critic/rae/task/${role}/baseline`]?.toFixed(2));
  const winning = metrics["reward_extra/winning_moves/mean"]?.toFixed(2);
  console.log(
    `step ${step}: winning moves ${winning}, baselines ${baselines.join(" and ")}, wins ${heldOut?.toFixed(2)}`,
  );
}
const { before, after, adapter, adapters } = await run;
const trained = adapters ? Object.values(adapters).join(", ") : adapter;
console.log(`games won against a player without a mistake: ${before?.toFixed(3)} -> ${after?.toFixed(3)}: ${trained}`);
