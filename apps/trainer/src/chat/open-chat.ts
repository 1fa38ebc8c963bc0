import { existsSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, extname, join } from "node:path";
import { type ChatMessage, ConfigError } from "@cria/core";
import { type LlamaModel, type LoadModelOptions, loadModel, readGguf } from "@cria/engine";
import { isAddress } from "@cria/hub";
import { defaultMultiTurn, type MultiTurnOptions, readRecords, type SamplingParams } from "@cria/rollout";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { type BaseTool, disposeTools, loadToolConfig, loadToolParser } from "@cria/tools";
import {
  checkArgument,
  Disposables,
  loadConfig,
  loadConfiguredModel,
  makeMultiTurnOptions,
  openRegistries,
  probeTemplate,
  resolvePath,
  type SftConfig,
  type TrainConfig,
  trainConfigSchema,
} from "@cria/trainer";
import { demoConfigPath } from "../assets/embedded-policy.js";
import { findTrained, type Trained } from "../export/find-trained.js";
import { restoreModel } from "../export/restore-model.js";

/** What the command line says; what is undefined is as the run or config has it. */
export interface OpenChatOptions {
  /** A model, an adapter, a run or checkpoint, a config of `cria train`; undefined: the embedded policy. */
  target?: string;
  /** Of a run: the checkpoint after this step. */
  step?: number;
  adapter?: string;
  /** The model that an adapter or a run belongs to. */
  base?: string;
  tools?: string;
  format?: string;
  system?: string;
  temperature?: number;
  topP?: number;
  maxTokens?: number;
  /** Default: drawn. */
  seed?: number;
  /** Tokens of the conversation. */
  context?: number;
  device?: "auto" | "cpu" | "cuda";
  threads?: number;
  /** Told of damaged checkpoints. */
  say: (text: string) => void;
  /** The file of a model's address on a hub; a path as it is. */
  fetch: (address: string) => Promise<string>;
}

/** Everything that a conversation needs. */
export interface Chat {
  /** What is talked to. */
  name: string;
  engine: LlamaModel;
  tokenizer: DeltaTokenizer;
  tools: Map<string, BaseTool>;
  multiTurn: MultiTurnOptions;
  sampling: SamplingParams;
  system: string | null;
  dispose(): Promise<void>;
}

/** What a target brings along. */
interface Subject {
  name: string;
  load: (overrides: Partial<LoadModelOptions>) => Promise<LlamaModel>;
  /** Whose tools, sampling and template count; null: those of a plain model. */
  config: TrainConfig | null;
  configFolder: string;
  sft: SftConfig | null;
  /** File of rows whose first has the system message that the policy knows, and its column; null: none. */
  rows: { file: string; key: string } | null;
}

/** Two, since a conversation that is taken back leaves its cache to the one that goes on from its beginning. */
const SEQUENCES = 2;
/** A file of rows that is larger is not read for a system message. */
const MOST_ROW_BYTES = 64 << 20;

/** Loads what is talked to. @throws ConfigError, DataError or EngineError naming what is wrong; nothing stays open then. */
export function openChat(options: OpenChatOptions): Promise<Chat> {
  return Disposables.open(async (open) => {
    const subject = await findSubject(options);
    const { config, configFolder } = subject;
    // Cheap checks first: a typo must not cost the time of loading a model.
    const toolFile = findToolFile(options, subject);
    const tools = toolFile === null ? new Map<string, BaseTool>() : await loadToolConfig(toolFile);
    open.add(() => disposeTools(tools.values()));
    const ownFormat = options.format === undefined ? null : await loadToolParser(options.format, process.cwd());
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
      ? await makeMultiTurnOptions(config.actor_rollout_ref.rollout, configFolder, openRegistries())
      : makePlainMultiTurn(engine, tokenizer);
    if (ownFormat) multiTurn.format = ownFormat;
    const system = options.system ?? (await readSystem(subject));
    return {
      name: subject.name,
      engine,
      tokenizer,
      tools,
      multiTurn,
      sampling: makeSampling(options, config),
      system: system === "" ? null : system,
      dispose: () => open.dispose(),
    };
  });
}

async function findSubject(options: OpenChatOptions): Promise<Subject> {
  const { target, adapter, step } = options;
  if (target === undefined)
    return { ...(await openConfig(demoConfigPath, options)), name: "the embedded policy, a toy" };
  if (isAddress(target)) return openModel(await options.fetch(target), target, await findAdapter(options));
  const path = checkArgument("model, adapter or run", target);
  if (statSync(path).isDirectory()) {
    refuse("--adapter", adapter, "a run has its own adapter");
    return openRun(path, options);
  }
  refuse("--step", step, "it names a checkpoint of a run folder");
  if ([".yaml", ".yml"].includes(extname(path))) return openConfig(path, options);
  const header = await readGguf(path);
  if (header.metadata.get("general.type")?.value !== "adapter")
    return openModel(path, basename(path), await findAdapter(options));
  refuse("--adapter", adapter, `${target} is an adapter itself`);
  return openAdapter(path, options);
}

async function findAdapter({ adapter, fetch }: OpenChatOptions): Promise<string | undefined> {
  return adapter === undefined ? undefined : fetch(checkArgument("--adapter", adapter));
}

async function findBase({ base, fetch }: OpenChatOptions): Promise<string | null> {
  return base === undefined ? null : fetch(checkArgument("--base", base));
}

function openModel(path: string, name: string, adapter: string | undefined): Subject {
  const lora = adapter === undefined ? null : { path: adapter };
  // With an adapter the cache is as in training, so that the numbers are too.
  const given: LoadModelOptions = { path, lora, trainable: "none", ...(lora ? { kvType: "f32" } : {}) };
  return {
    name: adapter === undefined ? name : `${name} with ${adapter}`,
    load: (overrides) => loadModel({ ...given, ...overrides }),
    config: null,
    sft: null,
    configFolder: process.cwd(),
    rows: null,
  };
}

/** The policy that a config would train, before it does. */
async function openConfig(file: string, options: OpenChatOptions): Promise<Subject> {
  const { values: config, folder } = loadConfig(trainConfigSchema, file);
  const { path } = config.actor_rollout_ref.model;
  if (isAddress(path)) await options.fetch(path);
  const adapter = await findAdapter(options);
  const lora = adapter === undefined ? {} : { lora: { path: adapter } };
  const untrained = config.actor_rollout_ref.model.lora_adapter_path === null ? { lora: null } : {};
  return {
    name: path,
    load: (overrides) =>
      loadConfiguredModel(config, folder, { trainable: "none", kvType: "f32", ...untrained, ...lora, ...overrides }),
    config,
    sft: null,
    configFolder: folder,
    rows: listRows(config, null, folder),
  };
}

async function openRun(path: string, options: OpenChatOptions): Promise<Subject> {
  const trained = await findTrained(findStep(path, options.step), await findBase(options), options.say);
  const { checkpoint } = trained;
  const after = checkpoint ? `, after step ${checkpoint.step}` : "";
  return describeTrained(trained, `${path}${after}`, (overrides) =>
    checkpoint ? restoreModel(trained.load(overrides), checkpoint) : loadWeights(trained, trained.weights!, overrides),
  );
}

/** An adapter in its run's folder knows its model; of another it must be named. */
async function openAdapter(path: string, options: OpenChatOptions): Promise<Subject> {
  const run = dirname(path);
  const base = await findBase(options);
  if (existsSync(join(run, "config.json"))) {
    const trained = await findTrained(run, base, options.say);
    return describeTrained(trained, path, (overrides) => loadWeights(trained, path, overrides));
  }
  if (base !== null) return openModel(base, basename(base), path);
  throw new ConfigError("is an adapter, and does not say of which model", {
    code: "config/no-base-model",
    subject: path,
    expected: "the model that it was trained on",
    remedy: `name it: cria chat ${path} --base model.gguf`,
  });
}

function loadWeights(trained: Trained, weights: string, overrides: Partial<LoadModelOptions>): Promise<LlamaModel> {
  const given: LoadModelOptions = trained.lora
    ? { path: trained.base, lora: { path: weights }, trainable: "none", kvType: "f32" }
    : { path: weights, trainable: "none", kvType: "f32" };
  return loadModel({ ...given, ...overrides });
}

function describeTrained({ train, sft, configFolder }: Trained, name: string, load: Subject["load"]): Subject {
  return { name, load, config: train, sft, configFolder, rows: listRows(train, sft, configFolder) };
}

function listRows(train: TrainConfig | null, sft: SftConfig | null, folder: string): Subject["rows"] {
  const [file] = (train ?? sft)!.data.train_files;
  if (file === undefined || isAddress(file)) return null;
  return { file: resolvePath(folder, file), key: train ? train.data.prompt_key : sft!.data.messages_key };
}

/** The folder of a run's checkpoint. @throws ConfigError that lists those there are. */
function findStep(path: string, step: number | undefined): string {
  if (step === undefined) return path;
  const folder = join(path, "checkpoints", `global_step_${step}`);
  if (existsSync(folder)) return folder;
  const names = existsSync(join(path, "checkpoints")) ? readdirSync(join(path, "checkpoints")) : [];
  const steps = names.flatMap((name) => /^global_step_(\d+)$/.exec(name)?.[1] ?? []).map(Number);
  throw new ConfigError("is not among the run's checkpoints", {
    code: "config/bad-argument",
    subject: `--step ${step}`,
    expected: steps.length > 0 ? steps.sort((a, b) => a - b).join(", ") : "a run folder with checkpoints",
    received: String(step),
    remedy: "without --step it is the newest",
  });
}

function findToolFile({ tools }: OpenChatOptions, { config, configFolder }: Subject): string | null {
  if (tools !== undefined) return checkArgument("--tools", tools);
  if (!config) return null;
  const { enable, tool_config_path } = config.actor_rollout_ref.rollout.multi_turn;
  return enable && tool_config_path !== null ? resolvePath(configFolder, tool_config_path) : null;
}

/** For a model that no config speaks of: the format of calls is what its own template writes. */
function makePlainMultiTurn(engine: LlamaModel, tokenizer: DeltaTokenizer): MultiTurnOptions {
  const ends = engine.info.endOfGenerationTokens.map((token) => engine.detokenize([token]));
  const { format } = probeTemplate((...given) => tokenizer.render(...given), ends);
  return {
    ...defaultMultiTurn,
    format: format ?? defaultMultiTurn.format,
    maxParallelCalls: 8,
    maxToolResponseLength: 1024,
  };
}

function makeSampling(options: OpenChatOptions, config: TrainConfig | null): SamplingParams {
  const own = config?.actor_rollout_ref.rollout;
  return {
    temperature: options.temperature ?? own?.temperature ?? 0.7,
    topP: options.topP ?? own?.top_p ?? 1,
    topK: Math.max(0, own?.top_k ?? 0),
    minP: own?.min_p ?? 0,
    stop: own?.stop ?? [],
    maxTokensPerTurn: options.maxTokens ?? own?.max_tokens_per_turn ?? null,
    seed: options.seed ?? Math.floor(Math.random() * 2 ** 31),
  };
}

/** The system message of the first row that a policy was trained on: without it a small one is lost. */
async function readSystem({ rows }: Subject): Promise<string | null> {
  if (!rows || !existsSync(rows.file) || statSync(rows.file).size > MOST_ROW_BYTES) return null;
  try {
    const [first] = await readRecords(rows.file);
    const messages = (first?.value as Record<string, ChatMessage[]> | undefined)?.[rows.key];
    const [message] = Array.isArray(messages) ? messages : [];
    return message?.role === "system" && typeof message.content === "string" ? message.content : null;
  } catch {
    // Rows that cannot be read any more are no reason not to talk.
    return null;
  }
}

function refuse(option: string, value: unknown, why: string): void {
  if (value === undefined) return;
  throw new ConfigError("does not go with this", {
    code: "config/bad-argument",
    subject: option,
    expected: "a command without it",
    received: String(value),
    remedy: why,
  });
}
