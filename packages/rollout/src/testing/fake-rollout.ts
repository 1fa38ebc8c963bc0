import type { Trajectory } from "@cria/core";
import { FakeEngine, type FakeEngineOptions } from "@cria/core/testing";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import type { BaseInteraction, BaseTool } from "@cria/tools";
import { type DatasetRow, parseRow } from "../data/dataset-row.js";
import { defaultMultiTurn, type MultiTurnOptions } from "../loops/agent-loop.js";
import type { RolloutOptions } from "../loops/rollout-options.js";
import { runRollouts } from "../loops/run-rollouts.js";

export interface FakeRolloutOptions extends Partial<Omit<RolloutOptions, "tools" | "interactions" | "multiTurn">> {
  /** Chooses the model's next answer. */
  reply: FakeEngineOptions["reply"];
  engine?: Partial<FakeEngineOptions>;
  tools?: readonly BaseTool[];
  interactions?: readonly BaseInteraction[] | null;
  multiTurn?: Partial<MultiTurnOptions>;
}

export interface FakeRollout {
  engine: FakeEngine;
  options: RolloutOptions;
  run: (rows?: readonly DatasetRow[]) => Promise<Trajectory[]>;
}

/** Rollouts of a scripted model: one sample of each row, rewarded 0, unless told otherwise. */
export function makeFakeRollout(given: FakeRolloutOptions): FakeRollout {
  const { reply, engine: engineOptions, tools = [], interactions = [], multiTurn, ...more } = given;
  const engine = new FakeEngine({ contextSize: 4096, ...engineOptions, reply });
  const options: RolloutOptions = {
    tokenizer: DeltaTokenizer.forModel(engine),
    tools: new Map(tools.map((tool) => [tool.name, tool])),
    interactions: interactions && new Map(interactions.map((interaction) => [interaction.name, interaction])),
    multiTurn: { ...defaultMultiTurn, toolTimeoutS: 60, ...multiTurn },
    reward: () => 0,
    n: 1,
    temperature: 1,
    topP: 1,
    topK: 0,
    seed: 1,
    step: 1,
    maxPromptLength: 1024,
    responseLength: 2048,
    truncation: "error",
    defaultAgentLoop: "tool_agent",
    ...more,
  };
  return { engine, options, run: (rows = [makeRow()]) => runRollouts(engine, rows, options) };
}

/** A row with one user message. */
export function makeRow(more: Record<string, unknown> = {}, index = 0): DatasetRow {
  const row = {
    data_source: "test",
    prompt: [{ role: "user", content: "hi" }],
    reward_model: { ground_truth: "7" },
    ...more,
    extra_info: { index, ...(more.extra_info as object | undefined) },
  };
  return parseRow(row, index, `row ${index}`);
}
