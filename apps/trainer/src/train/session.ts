import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { KlController } from "@cria/algorithms";
import { ConfigError, type PolicyEngine } from "@cria/core";
import { loadModel } from "@cria/engine";
import type { DatasetRow, RolloutOptions } from "@cria/rollout";
import { type BaseTool, createTools, type ToolConfigEntry } from "@cria/tools";
import { parse as parseYaml } from "yaml";
import { checkTrainConfig } from "../config/check-train-config.js";
import { resolvePath } from "../config/load-config.js";
import type { TrainConfig } from "../config/train-config.js";
import { makeDeltaTokenizer } from "../make-delta-tokenizer.js";
import { makeKlControllerOptions } from "./algorithm-options.js";
import type { Critic } from "./critic.js";
import { loadAlgorithms } from "./load-algorithms.js";
import { loadPolicy, readContextSize } from "./load-policy.js";
import { loadConfiguredLoops, loadInteractions, makeMultiTurnOptions } from "./multi-turn-options.js";
import { filterData, openData } from "./open-data.js";
import { openRewards } from "./open-rewards.js";

/** Everything that a config names, loaded: model, data, tools, reward. */
export interface Session {
  config: TrainConfig;
  engine: PolicyEngine;
  /** Its logprobs without adapter are the reference: the engine itself with LoRA, else a frozen copy; null: none needed. */
  reference: PolicyEngine | null;
  /** null: the advantage estimator needs none. */
  critic: Critic | null;
  /** Of the KL penalty in the reward; an adaptive one changes from step to step. */
  klController: KlController;
  trainRows: DatasetRow[];
  valRows: DatasetRow[];
  /** What all rollouts of the run share; sampling, step and n are added by the caller. */
  rollout: Omit<RolloutOptions, "n" | "temperature" | "topP" | "topK" | "step">;
  /** Greedy decoding is also a rollout, at temperature 0. */
  dispose(): Promise<void>;
}

export interface SessionOverrides {
  /** A ready engine instead of the config's model, for tests. */
  engine?: PolicyEngine;
  signal?: AbortSignal;
  /** No progress bar while rows are filtered, for --json. */
  silent?: boolean;
}

/** @throws ConfigError, DataError, EngineError or ToolError, each naming what is wrong. */
export async function openSession(
  config: TrainConfig,
  folder: string,
  overrides: SessionOverrides = {},
): Promise<Session> {
  const { model, rollout } = config.actor_rollout_ref;
  const { data } = config;
  // Cheap checks first: a typo must not cost the time of loading a model.
  await loadAlgorithms(config, folder);
  checkTrainConfig(config);
  await loadConfiguredLoops(rollout, folder);
  const multiTurn = rollout.multi_turn;
  const contextSize = readContextSize(config);
  const responseLength = Math.min(rollout.response_length, data.max_response_length);
  if (contextSize < data.max_prompt_length + responseLength) {
    throw new ConfigError("is too small for the prompts and responses that the config allows", {
      code: "config/context-too-small",
      subject: "actor_rollout_ref.rollout.max_model_len",
      expected: `at least ${data.max_prompt_length + responseLength} (data.max_prompt_length ${data.max_prompt_length} + response_length ${responseLength})`,
      received: String(contextSize),
    });
  }
  const allRows = await openData(data, folder);
  const tools =
    multiTurn.enable && multiTurn.tool_config_path
      ? await loadTools(resolvePath(folder, multiTurn.tool_config_path))
      : new Map<string, BaseTool>();
  const interactions = await loadInteractions(rollout, folder);
  const reward = await openRewards(config, folder, {
    responseLength,
    rows: [...allRows.train, ...allRows.val],
    hasOtherScores: tools.size > 0 || (interactions?.size ?? 0) > 0,
  });
  const prepareRows = async (engine: PolicyEngine) => {
    const tokenizer = makeDeltaTokenizer(engine, data.apply_chat_template_kwargs);
    return { tokenizer, rows: await filterData(allRows, data, folder, { ...overrides, engine, tokenizer, tools }) };
  };
  const path = resolvePath(folder, model.path);
  const engine = overrides.engine ?? (await loadPolicy(config, folder));
  const { tokenizer, rows } = await prepareRows(engine).catch(async (error) => {
    if (!overrides.engine) await engine.dispose();
    throw error;
  });
  const reference = await openReference(config, engine, path);
  return {
    config,
    engine,
    reference,
    critic: null,
    klController: new KlController(makeKlControllerOptions(config.algorithm)),
    trainRows: rows.train,
    valRows: rows.val,
    rollout: {
      tokenizer,
      tools,
      interactions,
      multiTurn: makeMultiTurnOptions(rollout),
      reward,
      seed: rollout.seed,
      maxPromptLength: data.max_prompt_length,
      responseLength,
      truncation: data.truncation,
      defaultAgentLoop: rollout.agent.default_agent_loop,
      weights: {
        trajectory: config.reward_model.aggregation.trajectory_weight,
        tool: config.reward_model.aggregation.tool_weight,
        interaction: config.reward_model.aggregation.interaction_weight,
      },
      returnFullPrompt: data.return_full_prompt,
      signal: overrides.signal,
      onWarning: warnOnce(),
    },
    dispose: async () => {
      if (reference !== engine) await reference?.dispose();
      await engine.dispose();
    },
  };
}

async function openReference(config: TrainConfig, engine: PolicyEngine, path: string): Promise<PolicyEngine | null> {
  if (!config.actor_rollout_ref.actor.use_kl_loss && !config.algorithm.use_kl_in_reward) return null;
  if (engine.info.trainable === "lora") return engine;
  try {
    // Only a trainable model has the scoring graph; its adapter, never trained, stays off.
    return await loadModel({
      path,
      threads: config.trainer.threads ?? undefined,
      contextSize: 64,
      maxSequences: 1,
      trainable: "lora",
      lora: { rank: 1, alpha: 1 },
    });
  } catch (error) {
    await engine.dispose();
    throw error;
  }
}

async function loadTools(file: string): Promise<Map<string, BaseTool>> {
  let entries: unknown;
  try {
    entries = (parseYaml(await readFile(file, "utf8")) as { tools?: unknown } | null)?.tools;
  } catch (cause) {
    throw new ConfigError("cannot be read", {
      code: "config/unreadable",
      subject: file,
      expected: "a YAML file of tools",
      received: (cause as Error).message,
      cause,
    });
  }
  if (!Array.isArray(entries) || entries.some((entry) => typeof entry?.class_name !== "string")) {
    throw new ConfigError("does not list tools", {
      code: "config/bad-value",
      subject: file,
      expected: "tools: [{ class_name, config?, tool_schema? }]",
      received: JSON.stringify(entries) ?? "nothing",
    });
  }
  return createTools(entries as ToolConfigEntry[], dirname(file));
}

/** Prints each kind of warning once in a session, however many batches have it. */
function warnOnce(): (warning: string) => void {
  const seen = new Set<string>();
  return (warning) => {
    const kind = warning.split("\n", 1)[0]!;
    if (!seen.has(kind)) process.stderr.write(`warning: ${warning}\n`);
    seen.add(kind);
  };
}
