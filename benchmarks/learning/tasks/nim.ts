import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { embeddedPolicyPath } from "@cria/models";
import { type AgentContext, train } from "cria";
import { THREADS } from "../../settings.js";
import type { LearningTask } from "./learning-task.js";
import { LearningRecord } from "./record-learning.js";

/** As examples/self-play says it. */
interface NimRow {
  stones: number;
  opponent?: "policy" | "best";
}
type Nim = (context: AgentContext<NimRow>) => Promise<{ score: number }>;

const example = join(import.meta.dirname, "..", "..", "..", "examples", "self-play", "nim.ts");

const settings = [
  "actor_rollout_ref.actor.entropy_coeff=0.01",
  "actor_rollout_ref.actor.optim.lr=1.5e-3",
  "actor_rollout_ref.actor.ppo_mini_batch_size=8",
  "actor_rollout_ref.rollout.n=4",
  "data.train_batch_size=8",
  "data.max_prompt_length=64",
  "data.max_response_length=256",
  "algorithm.adv_estimator=grpo",
];

/** "key.path=value" as a config; values are numbers or words. */
function nest(overrides: readonly string[]): Record<string, object> {
  const config: Record<string, object> = {};
  for (const override of overrides) {
    const [path, value] = override.split("=") as [string, string];
    const keys = path.split(".");
    let at = config as Record<string, unknown>;
    for (const key of keys.slice(0, -1)) {
      at[key] ??= {};
      at = at[key] as Record<string, unknown>;
    }
    at[keys.at(-1)!] = Number.isNaN(Number(value)) ? value : Number(value);
  }
  return config;
}

let runs = 0;

/** One policy plays both players; held out are games against a player without a mistake. */
export const twoPlayers: LearningTask = {
  name: "two players",
  steps: 240,
  teacherSteps: null,
  prepare: async () => [],
  async learn({ folder, seed, steps, overrides, every }) {
    const { nim } = (await import(pathToFileURL(example).href)) as { nim: Nim };
    const record = new LearningRecord();
    await train({
      model: embeddedPolicyPath,
      rows: Array.from({ length: 64 }, (_, i): NimRow => ({ stones: 1 + (i % 7) })),
      validation: {
        rows: [4, 5, 7].map((stones): NimRow => ({ stones, opponent: "best" })),
        ...{ every, n: 8, temperature: 1 },
      },
      agent: nim,
      ...{ steps, seed, threads: THREADS, folder, name: `nim-${runs++}`, trackers: [] },
      report: record.report,
      config: nest([...settings, ...overrides]),
    });
    return record.learned;
  },
};
