import { KlController } from "@cria/algorithms";
import { ConfigError, type PolicyEngine } from "@cria/core";
import { loadModel } from "@cria/engine";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { type BaseTool, disposeTools, loadToolConfig } from "@cria/tools";
import { checkTrainConfig } from "../config/check-train-config.js";
import { resolvePath } from "../config/paths.js";
import type { TrainConfig } from "../config/train-config.js";
import type { Report } from "../events.js";
import { makeRewardAggregator, openJudgedRewards, openRewards } from "../rewards/open-rewards.js";
import { makeKlControllerOptions } from "../step/algorithm-options.js";
import { loadAlgorithms } from "../user-code/load-algorithms.js";
import { providePackages } from "../user-code/provide-packages.js";
import { Disposables } from "./disposables.js";
import { loadPolicy, readContextSize } from "./load-policy.js";
import { loadConfiguredLoops, loadInteractions, makeMultiTurnOptions } from "./multi-turn-options.js";
import { openCritic } from "./open-critic.js";
import { filterData, openData } from "./open-data.js";
import { openRegistries } from "./registries.js";
import type { Session } from "./session-type.js";

export interface SessionOverrides {
  /** A ready engine instead of the config's model, for tests. */
  engine?: PolicyEngine;
  signal?: AbortSignal;
  report?: Report;
}

/** @throws ConfigError, DataError, EngineError or ToolError, each naming what is wrong; nothing stays open then. */
export async function openSession(
  config: TrainConfig,
  folder: string,
  overrides: SessionOverrides = {},
): Promise<Session> {
  providePackages();
  const open = new Disposables();
  try {
    return await openParts(config, folder, overrides, open);
  } catch (error) {
    await open.dispose().catch(() => undefined);
    throw error;
  }
}

async function openParts(
  config: TrainConfig,
  folder: string,
  overrides: SessionOverrides,
  open: Disposables,
): Promise<Session> {
  const { model, rollout } = config.actor_rollout_ref;
  const { data } = config;
  // Cheap checks first: a typo must not cost the time of loading a model.
  const registries = openRegistries();
  await loadAlgorithms(config, folder, registries);
  checkTrainConfig(config, registries);
  await loadConfiguredLoops(rollout, folder, registries);
  const multiTurn = await makeMultiTurnOptions(rollout, folder, registries);
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
    rollout.multi_turn.enable && rollout.multi_turn.tool_config_path
      ? await loadToolConfig(resolvePath(folder, rollout.multi_turn.tool_config_path), registries.toolClasses)
      : new Map<string, BaseTool>();
  open.add(() => disposeTools(tools.values()));
  const interactions = await loadInteractions(rollout, folder, registries);
  open.add(() => disposeTools(interactions?.values() ?? []));
  const rules = await openRewards(config, folder, {
    responseLength,
    rows: [...allRows.train, ...allRows.val],
    tools,
    interactions,
    defaultAgentLoop: rollout.agent.default_agent_loop,
    registries,
  });
  const judgedRewards = await openJudgedRewards(config, folder, rules);
  open.add(() => judgedRewards?.dispose());
  const engine = overrides.engine ?? (await loadPolicy(config, folder));
  open.add(() => engine.dispose());
  const tokenizer = DeltaTokenizer.forModel(engine, {
    kwargs: data.apply_chat_template_kwargs,
    allowControlTokens: data.allow_control_tokens,
  });
  const rows = await filterData(allRows, data, folder, { ...overrides, engine, tokenizer, tools });
  const reference = await openReference(config, engine, resolvePath(folder, model.path));
  if (reference !== engine) open.add(() => reference?.dispose());
  const critic = await openCritic(config, folder, registries);
  open.add(() => critic?.engine.dispose());
  return {
    config,
    registries,
    engine,
    reference,
    critic,
    judgedRewards,
    klController: new KlController(makeKlControllerOptions(config.algorithm)),
    trainRows: rows.train,
    valRows: rows.val,
    rollout: {
      tokenizer,
      tools,
      interactions,
      multiTurn,
      stop: rollout.stop,
      maxTokensPerTurn: rollout.max_tokens_per_turn,
      reward: judgedRewards ?? rules,
      seed: rollout.seed,
      maxPromptLength: data.max_prompt_length,
      responseLength,
      truncation: data.truncation,
      defaultAgentLoop: rollout.agent.default_agent_loop,
      agentLoops: registries.agentLoops,
      rewards: registries.rewards,
      aggregate: makeRewardAggregator(config.reward_model),
      onFailure: rollout.on_failure,
      returnFullPrompt: data.return_full_prompt,
      signal: overrides.signal,
      onWarning: reportOnce(overrides.report),
    },
    dispose: () => open.dispose(),
  };
}

async function openReference(config: TrainConfig, engine: PolicyEngine, path: string): Promise<PolicyEngine | null> {
  if (!config.actor_rollout_ref.actor.use_kl_loss && !config.algorithm.use_kl_in_reward) return null;
  if (engine.info.trainable === "lora") return engine;
  // Only a trainable model has the scoring graph; its adapter, never trained, stays off.
  return loadModel({
    path,
    device: config.trainer.device,
    threads: config.trainer.threads ?? undefined,
    contextSize: 64,
    maxSequences: 1,
    trainable: "lora",
    lora: { rank: 1, alpha: 1 },
  });
}

/** Reports each kind of warning once in a session, however many batches have it. */
function reportOnce(report: Report | undefined): (warning: string) => void {
  const seen = new Set<string>();
  return (warning) => {
    const kind = warning.split("\n", 1)[0]!;
    if (!seen.has(kind)) report?.({ type: "warning", text: warning });
    seen.add(kind);
  };
}
