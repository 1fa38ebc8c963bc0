import { ConfigError, DataError } from "@cria/core";
import type { DatasetRow } from "../data/dataset-row.js";
import { samplesOf } from "../data/row-samples.js";
import { findLoop, type RolloutOptions } from "./rollout-options.js";
import { countLeaves, type TreeOptions } from "./tree-options.js";

/**
 * Checks that conversations of the rows can go on from turns of others: as trees, or to measure the value of turns.
 * @param judgesEach false: a conversation is judged once all have ended.
 * @throws ConfigError for a loop or an option that does not go with it; DataError for a row whose samples are no whole
 * trees.
 */
export function checkBranches(rows: readonly DatasetRow[], options: RolloutOptions, judgesEach: boolean): void {
  const { tree, turnValues, n, converse, choose, multiTurn, onFailure } = options;
  if (!tree && !turnValues) return;
  const refuse = (problem: string, expected: string, received: string) =>
    new ConfigError(problem, {
      code: "config/bad-value",
      subject: tree ? "tree" : "turnValues",
      expected: `none, or ${expected}`,
      received,
    });
  if (tree && turnValues) throw refuse("measures no values of turns", "no turnValues", "turnValues");
  if (converse) throw refuse("needs all conversations in one process", "no bus", "conversations in other processes");
  if (choose)
    throw refuse("needs one policy that samples all turns", "one policy", "several policies that sample turns");
  if (multiTurn.useInferenceChatTemplate)
    throw refuse(
      "branches at the ends of turns, which a later rendering may change",
      "multi_turn.use_inference_chat_template false",
      "true",
    );
  // A conversation that is judged may be sampled again, and only then others go on from it.
  if (tree && onFailure === "refill" && !judgesEach)
    throw refuse(
      "needs conversations that are judged one by one",
      "on_failure drop or error",
      "refill, with a reward manager that judges conversations together",
    );
  if (turnValues && !judgesEach)
    throw refuse(
      "needs conversations that are judged one by one",
      "a reward manager that judges each",
      "one that judges conversations together",
    );
  if (tree) checkTreeSamples(rows, n, tree);
  const row = rows.find((each) => findLoop(each, options).recorded !== "answers");
  if (row)
    throw refuse(
      "branches the conversations of the built-in loop alone",
      "agent loop tool_agent",
      `row ${row.index} (${row.place}) has ${row.agentName ?? options.defaultAgentLoop}`,
    );
}

/**
 * Checks that the samples of each row are whole trees.
 * @param n samples of a row without its own number.
 * @throws DataError that names the row.
 */
export function checkTreeSamples(rows: readonly DatasetRow[], n: number, tree: TreeOptions): void {
  const leaves = countLeaves(tree);
  for (const row of rows) {
    const samples = samplesOf(row, n);
    if (samples % leaves === 0) continue;
    throw new DataError("is no number of whole trees", {
      code: "data/bad-row",
      subject: `samples of row ${row.index} (${row.place})`,
      expected: `a multiple of ${leaves}: each tree has 1 + rounds x expansions conversations (rollout.tree)`,
      received: String(samples),
    });
  }
}
