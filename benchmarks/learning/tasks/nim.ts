import { join } from "node:path";
import { embeddedPolicyPath } from "@cria/models";
import { train } from "cria";
import { loadConfig, trainConfigSchema } from "cria/config";
import { type NimRow, nim } from "../../../examples/self-play/nim.js";
import { THREADS } from "../../settings.js";
import type { LearningTask } from "./learning-task.js";
import { LearningRecord } from "./record-learning.js";

let runs = 0;

/** One policy plays both players; held out are games against a player without a mistake. */
export const twoPlayers: LearningTask = {
  name: "two players",
  steps: 60,
  teacherSteps: null,
  prepare: async () => [],
  async learn({ folder, seed, steps, overrides, every }) {
    const record = new LearningRecord();
    const { values } = loadConfig(trainConfigSchema, join(import.meta.dirname, "nim.yaml"), [
      `actor_rollout_ref.model.path=${embeddedPolicyPath}`,
      ...overrides,
    ]);
    await train({
      model: embeddedPolicyPath,
      rows: Array.from({ length: 64 }, (_, i): NimRow => ({ stones: 1 + (i % 7) })),
      validation: {
        rows: [4, 5, 7].map((stones): NimRow => ({ stones, opponent: "best" })),
        ...{ every, n: 16, temperature: 1 },
      },
      agent: nim,
      ...{ steps, seed, threads: THREADS, folder, name: `nim-${runs++}`, trackers: [] },
      report: record.report,
      config: values,
    });
    return record.learned;
  },
};
