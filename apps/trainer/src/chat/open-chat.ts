import { existsSync, statSync } from "node:fs";
import type { ChatMessage, Device } from "@cria/core";
import { pickSampling } from "@cria/core/internal";
import type { LlamaModel } from "@cria/engine";
import { type MultiTurnOptions, readRecords, type SamplingParams } from "@cria/rollout";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { type BaseTool, disposeTools, loadToolConfig } from "@cria/tools";
import { loadToolFormat } from "@cria/tools/internal";
import { openRegistries, type TrainConfig } from "@cria/trainer";
import {
  checkArgument,
  Disposables,
  importMultiTurn,
  importSampling,
  openMultiTurn,
  resolvePath,
} from "@cria/trainer/internal";
import { type FindSubjectOptions, findSubject, type Subject } from "../subject/find-subject.js";
import { makePlainMultiTurn } from "../subject/plain-multi-turn.js";

/** Options of the command line; undefined ones come from the run or config. */
export interface OpenChatOptions extends FindSubjectOptions {
  tools?: string;
  format?: string;
  system?: string;
  temperature?: number;
  topP?: number;
  maxTokens?: number;
  /** Default: random. */
  seed?: number;
  /** Tokens of the conversation. */
  context?: number;
  device?: Device;
  threads?: number;
}

/** The parts of a conversation. */
export interface Chat {
  /** Name of the model or run. */
  name: string;
  engine: LlamaModel;
  tokenizer: DeltaTokenizer;
  tools: Map<string, BaseTool>;
  multiTurn: MultiTurnOptions;
  sampling: SamplingParams;
  system: string | null;
  /**
   * The question of the first row that the policy was trained on; null: there is no such row, or its question has
   * several lines.
   */
  example: string | null;
  dispose(): Promise<void>;
}

/**
 * Two: after taking a message back, the old sequence keeps its cache until the new one has copied the common beginning.
 */
const SEQUENCES = 2;
/** Largest file of rows that is read for a system message. */
const MOST_ROW_BYTES = 64 << 20;

/**
 * Loads the model or run to chat with.
 * @throws ConfigError, DataError or EngineError; nothing stays open then.
 */
export function openChat(options: OpenChatOptions): Promise<Chat> {
  return Disposables.open(async (open) => {
    const subject = await findSubject(options);
    const { config, configFolder } = subject;
    // Cheap checks first, so that a typo does not cost the time of loading a model.
    const toolFile = findToolFile(options, subject);
    const tools = toolFile === null ? new Map<string, BaseTool>() : await loadToolConfig(toolFile);
    open.add(() => disposeTools(tools.values()));
    const ownFormat = options.format === undefined ? null : await loadToolFormat(options.format, process.cwd());
    const engine = await subject.load({
      contextSize: options.context,
      maxSequences: SEQUENCES,
      ...(options.device ? { device: options.device } : {}),
      ...(options.threads ? { threads: options.threads } : {}),
    });
    open.add(() => engine.dispose());
    const tokenizer = DeltaTokenizer.forModel(engine, {
      kwargs: config?.data.apply_chat_template_kwargs,
      allowControlTokens: (config ?? subject.sft)?.data.allow_control_tokens,
    });
    const multiTurn = config
      ? await openMultiTurn(importMultiTurn(config), configFolder, openRegistries())
      : makePlainMultiTurn(tokenizer);
    if (ownFormat) multiTurn.format = ownFormat;
    const row = await readFirstRow(subject);
    const system = options.system ?? row.system;
    return {
      name: subject.name,
      engine,
      tokenizer,
      tools,
      multiTurn,
      sampling: makeSampling(options, config),
      system: system === "" ? null : system,
      example: row.example,
      dispose: () => open.dispose(),
    };
  });
}

function findToolFile({ tools }: OpenChatOptions, { config, configFolder }: Subject): string | null {
  if (tools !== undefined) return checkArgument("--tools", tools);
  if (!config) return null;
  const { enable, tool_config_path } = config.actor_rollout_ref.rollout.multi_turn;
  return enable && tool_config_path !== null ? resolvePath(configFolder, tool_config_path) : null;
}

function makeSampling(options: OpenChatOptions, config: TrainConfig | null): SamplingParams {
  const own = config?.actor_rollout_ref.rollout;
  const sampling = pickSampling(config ? importSampling(config) : { temperature: 0.7 });
  return {
    ...sampling,
    temperature: options.temperature ?? sampling.temperature,
    topP: options.topP ?? sampling.topP,
    stop: own?.stop ?? [],
    maxTokensPerTurn: options.maxTokens ?? own?.max_tokens_per_turn ?? null,
    seed: options.seed ?? Math.floor(Math.random() * 2 ** 31),
  };
}

/** Characters of the longest example that is shown. */
const MOST_EXAMPLE = 200;

/**
 * The system message and the question of the first row that a policy was trained on: a small one needs both to work.
 */
async function readFirstRow({ rows }: Subject): Promise<{ system: string | null; example: string | null }> {
  const none = { system: null, example: null };
  if (!rows || !existsSync(rows.file) || statSync(rows.file).size > MOST_ROW_BYTES) return none;
  try {
    const [first] = await readRecords(rows.file);
    const messages = (first?.value as Record<string, ChatMessage[]> | undefined)?.[rows.key];
    const read = (role: string) => {
      const content = Array.isArray(messages) ? messages.find((message) => message?.role === role)?.content : null;
      return typeof content === "string" ? content : null;
    };
    const question = read("user");
    const isShort = question !== null && question.length <= MOST_EXAMPLE && !question.includes("\n");
    return { system: messages?.[0]?.role === "system" ? read("system") : null, example: isShort ? question : null };
  } catch {
    // Chatting works without readable rows.
    return none;
  }
}
