import { ConfigError } from "@cria/core";
import { type DatasetRow, makeRewardManager, openTracer, type RewardManager } from "@cria/rollout";
import { type BaseInteraction, disposeTools, loadToolConfig, type OpenedTools, openTools } from "@cria/tools";
import { checkConfig } from "../config/check-config.js";
import { readContextSize } from "../config/derived-values.js";
import { resolvePath } from "../config/paths.js";
import { type TrainConfig, trainConfigSchema } from "../config/train-config.js";
import type { Report } from "../events.js";
import { makeImageAccess } from "../policy/describe-vision.js";
import type { Policy } from "../policy/policy.js";
import type { JudgedRewards } from "../rewards/judged-rewards.js";
import { makeRewardAggregator, openJudgedRewards, openRewards } from "../rewards/open-rewards.js";
import { openRegistries, type Registries } from "../user-code/registries.js";
import { makeAgentConnections } from "./agent-connections.js";
import { Disposables } from "./disposables.js";
import type { Environment } from "./environment.js";
import { probeModel } from "./find-tool-format.js";
import { loadConfiguredLoops, loadInteractions, makeMultiTurnOptions } from "./multi-turn-options.js";
import { AGENT_IN_MEMORY, describeTask, registerAgent } from "./task-config.js";
import type { TaskDefinition } from "./task-definition.js";
import { toRewardFunction } from "./task-rows.js";

export interface OpenEnvironmentOptions {
  /** What names in the config stand for. */
  registries: Registries;
  /** All rows that may be rolled out, for training and for validation. */
  rows: readonly DatasetRow[];
  /** What it gives in memory overrides what the config names. */
  task?: TaskDefinition<object>;
  /** Whether rewards and judges are opened. Default true; false: conversations are judged elsewhere, and here by nobody. */
  judges?: boolean;
  report?: Report;
}

export interface OpenedEnvironment {
  environment: Environment;
  /** `environment.reward` where models judge beside the rules; null without. */
  judgedRewards: JudgedRewards | null;
  /** Ends tools, interactions and judges. */
  dispose(): Promise<void>;
}

/** Opens what a config says of rollouts: tools, interactions, agent loops, rewards. @throws ConfigError or ToolError */
export function openEnvironment(
  config: TrainConfig,
  folder: string,
  options: OpenEnvironmentOptions,
): Promise<OpenedEnvironment> {
  return Disposables.open(async (open) => {
    const opened = await openParts(config, folder, options, open);
    return { ...opened, dispose: () => open.dispose() };
  });
}

async function openParts(
  config: TrainConfig,
  folder: string,
  { registries, rows, task, judges = true, report }: OpenEnvironmentOptions,
  open: Disposables,
): Promise<Omit<OpenedEnvironment, "dispose">> {
  const { data } = config;
  const { rollout } = config.actor_rollout_ref;
  await loadConfiguredLoops(rollout, folder, registries);
  const multiTurn = await makeMultiTurnOptions(rollout, folder, registries);
  const responseLength = Math.min(rollout.response_length, data.max_response_length);
  checkContext(config, responseLength);
  const { tools, dispose: disposeOpened } = await openConfiguredTools(config, folder, registries, task);
  open.add(disposeOpened);
  const interactions = await openInteractions(config, folder, registries, task, open);
  const openRules = () =>
    openRewards(config, folder, {
      responseLength,
      rows,
      tools,
      interactions,
      defaultAgentLoop: rollout.agent.default_agent_loop,
      registries,
      reward: typeof task?.reward === "function" ? toRewardFunction(task.reward) : undefined,
    });
  const rules = judges ? await openRules() : judgedElsewhere;
  const judgedRewards = judges ? await openJudgedRewards(config, folder, rules) : null;
  open.add(() => judgedRewards?.dispose());
  const tracer = config.trainer.tracing === "otel" ? await openTracer() : undefined;
  return {
    judgedRewards,
    environment: {
      tools,
      interactions,
      multiTurn,
      stop: rollout.stop,
      maxTokensPerTurn: rollout.max_tokens_per_turn,
      reward: judgedRewards ?? rules,
      maxPromptLength: data.max_prompt_length,
      responseLength,
      truncation: data.truncation,
      defaultAgentLoop: rollout.agent.default_agent_loop,
      agentLoops: registries.agentLoops,
      rewards: registries.rewards,
      aggregate: makeRewardAggregator(config.reward_model),
      onFailure: rollout.on_failure,
      agent: {
        timeoutS: rollout.agent.timeout_s,
        maxCalls: multiTurn.maxAssistantTurns ?? rollout.agent.max_calls,
        branchCredit: rollout.branch_credit,
        trainOnConstrained: rollout.train_on_constrained_tokens,
        ...makeAgentConnections(),
      },
      images: makeImageAccess(data),
      returnFullPrompt: data.return_full_prompt,
      ...(tracer ? { tracer } : {}),
      onWarning: reportOnce(report),
    },
  };
}

/**
 * Opens a task for an own loop, with the config's defaults for all that it does not say.
 * @throws ConfigError, also where the policy's context cannot hold a conversation of the task; ToolError.
 */
export async function openTaskEnvironment(
  definition: TaskDefinition<object>,
  rows: readonly DatasetRow[],
  policy: Policy,
): Promise<OpenedEnvironment> {
  const described = describeTask(definition);
  const { path, contextSize } = policy.engine.info;
  const { rollout } = described.actor_rollout_ref as { rollout: object };
  const raw = {
    ...described,
    actor_rollout_ref: { rollout: { ...rollout, max_model_len: contextSize }, model: { path } },
  };
  const config = checkConfig(trainConfigSchema, raw, "defineTask");
  const { max_prompt_length, max_response_length } = config.data;
  const needed = max_prompt_length + max_response_length;
  if (contextSize < needed) {
    throw new ConfigError("is too small for the prompts and responses that the task allows", {
      code: "config/context-too-small",
      subject: `contextSize of the policy ${path}`,
      expected: `at least ${needed} (maxPromptLength ${max_prompt_length} + maxResponseLength ${max_response_length})`,
      received: String(contextSize),
      remedy: `loadPolicy(path, { contextSize: ${needed} }), or lower those of the task`,
    });
  }
  const registries = openRegistries();
  registerAgent(registries, definition);
  const opened = await openEnvironment(config, process.cwd(), { registries, rows, task: definition });
  if (definition.toolFormat === undefined) fitToolFormat(opened.environment, policy);
  return opened;
}

/** Tool calls are read as the model's chat template prints them; where it prints none, as the config's default says. */
export function fitToolFormat(environment: Environment, { tokenizer }: Policy): void {
  if (environment.tools.size === 0 && environment.defaultAgentLoop !== AGENT_IN_MEMORY) return;
  const { format } = probeModel(tokenizer);
  if (format !== null) environment.multiTurn = { ...environment.multiTurn, format };
}

/** @throws ConfigError where the context cannot hold what the config allows. */
function checkContext(config: TrainConfig, responseLength: number): void {
  const { max_prompt_length } = config.data;
  const contextSize = readContextSize(config);
  if (contextSize >= max_prompt_length + responseLength) return;
  throw new ConfigError("is too small for the prompts and responses that the config allows", {
    code: "config/context-too-small",
    subject: "actor_rollout_ref.rollout.max_model_len",
    expected: `at least ${max_prompt_length + responseLength} (data.max_prompt_length ${max_prompt_length} + response_length ${responseLength})`,
    received: String(contextSize),
  });
}

async function openConfiguredTools(
  config: TrainConfig,
  folder: string,
  { toolClasses }: Registries,
  task: TaskDefinition<object> | undefined,
): Promise<OpenedTools> {
  if (typeof task?.tools === "object") return openTools(task.tools);
  const { enable, tool_config_path } = config.actor_rollout_ref.rollout.multi_turn;
  const isNamed = enable && tool_config_path !== null;
  const tools = isNamed ? await loadToolConfig(resolvePath(folder, tool_config_path), toolClasses) : new Map();
  return { tools, dispose: () => disposeTools(tools.values()) };
}

async function openInteractions(
  config: TrainConfig,
  folder: string,
  registries: Registries,
  task: TaskDefinition<object> | undefined,
  open: Disposables,
): Promise<Map<string, BaseInteraction> | null> {
  // Whoever made an interaction in memory disposes of it, as with tools.
  if (typeof task?.interaction === "object") return new Map([[task.interaction.name, task.interaction]]);
  const interactions = await loadInteractions(config.actor_rollout_ref.rollout, folder, registries);
  open.add(() => disposeTools(interactions?.values() ?? []));
  return interactions;
}

/** In the place of rewards that another process gives. */
const judgedElsewhere: RewardManager = makeRewardManager("naive", { reward: () => 0 });

/** Reports each kind of warning once in a run, however many batches have it. */
function reportOnce(report: Report | undefined): (warning: string) => void {
  const seen = new Set<string>();
  return (warning) => {
    const kind = warning.split("\n", 1)[0]!;
    if (!seen.has(kind)) report?.({ type: "warning", text: warning });
    seen.add(kind);
  };
}
