import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { embeddedPolicyPath } from "@cria/models";
import { type AgentContext, train } from "cria";
import { fromConfig } from "cria/config";
import type { LearningTask } from "./learning-task.js";
import { LearningRecord } from "./record-learning.js";

/** As examples/self-play says it. */
interface NimRow {
  stones: number;
  opponent?: "policy" | "best";
}
type Nim = (context: AgentContext<NimRow>) => Promise<{ score: number }>;

const example = join(import.meta.dirname, "..", "..", "..", "examples", "self-play", "nim.ts");

let runs = 0;

/** One policy plays both players; held out are games against a player without a mistake. */
export const twoPlayers: LearningTask = {
  name: "two players",
  tokens: 50_000,
  steps: 600,
  every: 2000,
  teacher: null,
  methods: ["a baseline for each player (RAE)"],
  prepare: async () => [],
  async learn({ folder, seed, steps, tokens, overrides, every }) {
    const { nim } = (await import(pathToFileURL(example).href)) as { nim: Nim };
    const record = new LearningRecord({ every, tokens });
    const run = train({
      ...fromConfig(join(import.meta.dirname, "nim.yaml"), overrides),
      model: embeddedPolicyPath,
      rows: Array.from({ length: 64 }, (_, i): NimRow => ({ stones: 1 + (i % 7) })),
      validation: {
        rows: [4, 5, 7].map((stones): NimRow => ({ stones, opponent: "best" })),
        ...{ n: 8, temperature: 1 },
      },
      agent: nim,
      ...{ steps, seed, threads: 1, folder, name: `nim-${runs++}`, trackers: [] },
      report: (event) => {
        record.report(event);
        if (event.type === "step" && record.isPointDue) void run.evaluate();
        if (record.isOver) run.stop();
      },
    });
    await run;
    return record.points;
  },
};
