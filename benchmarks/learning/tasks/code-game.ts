import { join } from "node:path";
import { drawCode, makeCodeGameRows, Random, writeCodeDemonstration } from "@cria/models";
import { taskFromConfig } from "./from-config.js";
import { makePolicy } from "./make-policy.js";

const DEMONSTRATIONS = 25_600;
/** Most games repeat their guess; of the others most slip. */
const noise = { follow: 0.01, repeat: 0.7 };

/** Four guesses in a row, each of which must follow all answers, and one reward at the end. */
export const codeGame = taskFromConfig({
  name: "a game with one reward at its end",
  config: join(import.meta.dirname, "..", "..", "..", "examples", "code-game", "config.yaml"),
  tokens: 12_000,
  steps: 400,
  every: 500,
  teacher: { steps: 40 },
  prepare: () =>
    makePolicy({
      name: "code-game-1",
      demonstrations: () => {
        const random = new Random(1);
        return Array.from({ length: DEMONSTRATIONS }, () => ({
          messages: writeCodeDemonstration(random, drawCode(random, "train"), noise),
          tools: [],
        }));
      },
      rows: makeCodeGameRows,
    }),
});
