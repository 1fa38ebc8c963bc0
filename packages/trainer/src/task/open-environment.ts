import { ConfigError } from "@cria/core";
import { type DatasetRow, makeRewardManager, openTracer, type RewardManager } from "@cria/rollout";
import { type BaseInteraction, disposeTools, loadToolConfig, type OpenedTools, openTools } from "@cria/tools";
import { type EnvironmentOptions, environmentOptions } from "../config/options/environment.js";
import { resolvePath } from "../config/paths.js";
import type { Report } from "../events.js";
import { makeImageAccess } from "../policy/describe-vision.js";
import type { Policy } from "../policy/policy.js";
import type { JudgedRewards } from "../rewards/judged-rewards.js";
import type { JudgeDevice } from "../rewards/open-reward-models.js";
import { makeRewardAggregator, openJudgedRewards, openRewards } from "../rewards/open-rewards.js";
import { openRegistries, type Registries } from "../user-code/registries.js";
import { makeAgentConnections } from "./agent-connections.js";
import { Disposables } from "./disposables.js";
import type { Environment } from "./environment.js";
import { probeModel } from "./find-tool-format.js";
import { loadConfiguredLoops, loadInteractions, openMultiTurn } from "./multi-turn-options.js";
import { AGENT_IN_MEMORY, describeEnvironment, registerAgent } from "./task-config.js";
import type { TaskDefinition } from "./task-definition.js";
import { toRewardFunction } from "./task-rows.js";

export interface OpenEnvironmentOptions {
  /** Registries of the names in the options. */
  registries: Registries;
  /** All rows that may be rolled out, for training and for validation. */
  rows: readonly DatasetRow[];
  /** A task in memory, which overrides the options. */
  task?: TaskDefinition<object>;
  /** True: open rewards and judges. Default true; false: another process judges the conversations. */
  judges?: boolean;
  /** Device of judging models; default: chosen automatically. */
  device?: JudgeDevice;
  report?: Report;
}

export interface OpenedEnvironment {
  environment: Environment;
  /** The same as `environment.reward` if reward models judge in addition to the rules; else null. */
  judgedRewards: JudgedRewards | null;
  /** Closes tools, interactions and judges. */
  dispose(): Promise<void>;
}

/**
 * Opens the tools, interactions, agent loops and rewards that the options name.
 * @param folder base of relative paths.
 * @throws ConfigError or ToolError
 */
export function openEnvironment(
  options: EnvironmentOptions,
  folder: string,
  given: OpenEnvironmentOptions,
): Promise<OpenedEnvironment> {
  return Disposables.open(async (open) => {
    const opened = await openParts(options, folder, given, open);
    return { ...opened, dispose: () => open.dispose() };
  });
}

async function openParts(
  options: EnvironmentOptions,
  folder: string,
  { registries, rows, task, judges = true, device, report }: OpenEnvironmentOptions,
  open: Disposables,
): Promise<Omit<OpenedEnvironment, "dispose">> {
  const { stop, maxTokensPerTurn, maxPromptLength, truncation, returnFullPrompt, onFailure, agent, rewards } = options;
  const { defaultAgentLoop } = agent;
  const responseLength = options.maxResponseLength;
  await loadConfiguredLoops(agent, folder, registries);
  const multiTurn = await openMultiTurn(options.multiTurn, folder, registries);
  const { tools, dispose: disposeOpened } = await openNamedTools(options, folder, registries, task);
  open.add(disposeOpened);
  const interactions = await openInteractions(options, folder, registries, task, open);
  const openRules = () =>
    openRewards(rewards, folder, {
      responseLength,
      rows,
      tools,
      interactions,
      defaultAgentLoop,
      registries,
      reward: typeof task?.reward === "function" ? toRewardFunction(task.reward) : undefined,
    });
  const rules = judges ? await openRules() : judgedElsewhere;
  const judgedRewards = judges ? await openJudgedRewards(rewards, folder, rules, device) : null;
  open.add(() => judgedRewards?.dispose());
  const tracer = options.tracing === "otel" ? await openTracer() : undefined;
  return {
    judgedRewards,
    environment: {
      tools,
      interactions,
      multiTurn,
      stop,
      maxTokensPerTurn,
      reward: judgedRewards ?? rules,
      maxPromptLength,
      responseLength,
      truncation,
      defaultAgentLoop,
      agentLoops: registries.agentLoops,
      rewards: registries.rewards,
      aggregate: makeRewardAggregator(rewards.aggregation),
      onFailure,
      agent: {
        timeoutS: agent.timeoutS,
        maxCalls: multiTurn.maxAssistantTurns ?? agent.maxCalls,
        branchCredit: options.branchCredit,
        trainOnConstrained: options.trainOnConstrainedTokens,
        ...makeAgentConnections(),
      },
      images: makeImageAccess(options.images),
      returnFullPrompt,
      ...(tracer ? { tracer } : {}),
      onWarning: reportOnce(report),
    },
  };
}

/**
 * Opens a task for an own loop, with defaults for everything that it leaves out.
 * @throws ConfigError, also if no conversation of the task fits into the policy's context; ToolError.
 */
export async function openTaskEnvironment(
  definition: TaskDefinition<object>,
  rows: readonly DatasetRow[],
  policy: Policy,
): Promise<OpenedEnvironment> {
  const options = environmentOptions.parse(describeEnvironment(definition));
  const { path, contextSize } = policy.engine.info;
  const { maxPromptLength, maxResponseLength } = options;
  const needed = maxPromptLength + maxResponseLength;
  if (contextSize < needed) {
    throw new ConfigError("is too small for the prompts and responses that the task allows", {
      code: "config/context-too-small",
      subject: `contextSize of the policy ${path}`,
      expected: `at least ${needed} (maxPromptLength ${maxPromptLength} + maxResponseLength ${maxResponseLength})`,
      received: String(contextSize),
      remedy: `loadPolicy(path, { contextSize: ${needed} }), or lower those of the task`,
    });
  }
  const registries = openRegistries();
  registerAgent(registries, definition);
  const opened = await openEnvironment(options, process.cwd(), { registries, rows, task: definition });
  if (definition.toolFormat === undefined) fitToolFormat(opened.environment, policy);
  return opened;
}

/** Selects the tool-call format that the model's chat template prints; if it prints none, the default. */
export function fitToolFormat(environment: Environment, { tokenizer }: Policy): void {
  if (environment.tools.size === 0 && environment.defaultAgentLoop !== AGENT_IN_MEMORY) return;
  const { format } = probeModel(tokenizer);
  if (format !== null) environment.multiTurn = { ...environment.multiTurn, format };
}

async function openNamedTools(
  { toolConfigPath }: EnvironmentOptions,
  folder: string,
  { toolClasses }: Registries,
  task: TaskDefinition<object> | undefined,
): Promise<OpenedTools> {
  if (typeof task?.tools === "object") return openTools(task.tools);
  const tools =
    toolConfigPath === null ? new Map() : await loadToolConfig(resolvePath(folder, toolConfigPath), toolClasses);
  return { tools, dispose: () => disposeTools(tools.values()) };
}

async function openInteractions(
  options: EnvironmentOptions,
  folder: string,
  registries: Registries,
  task: TaskDefinition<object> | undefined,
  open: Disposables,
): Promise<Map<string, BaseInteraction> | null> {
  // As with tools, the maker of an interaction in memory disposes of it.
  if (typeof task?.interaction === "object") return new Map([[task.interaction.name, task.interaction]]);
  const interactions = await loadInteractions(options, folder, registries);
  open.add(() => disposeTools(interactions?.values() ?? []));
  return interactions;
}

/** Stands in for rewards that another process computes. */
const judgedElsewhere: RewardManager = makeRewardManager("naive", { reward: () => 0 });

/** Reports each kind of warning once per run. */
function reportOnce(report: Report | undefined): (warning: string) => void {
  const seen = new Set<string>();
  return (warning) => {
    const kind = warning.split("\n", 1)[0]!;
    if (!seen.has(kind)) report?.({ type: "warning", text: warning });
    seen.add(kind);
  };
}
