import { existsSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, extname, join } from "node:path";
import { ConfigError } from "@cria/core";
import { type LlamaModel, type LoadModelOptions, loadModel, readGguf } from "@cria/engine";
import { isAddress } from "@cria/hub/internal";
import { type Checkpoint, loadConfig, type SftConfig, type TrainConfig, trainConfigSchema } from "@cria/trainer";
import { checkArgument, describeVision, loadConfiguredModel, type Role, resolvePath } from "@cria/trainer/internal";
import { demoConfigPath } from "../assets/embedded-policy.js";
import { findTrained, type Trained } from "../export/find-trained.js";
import { restoreModel } from "../export/restore-model.js";

/** Options that name a command's policy. */
export interface FindSubjectOptions {
  /** A model, an adapter, a run or checkpoint, a config of `cria train`; undefined: the embedded policy. */
  target?: string;
  /** The run's checkpoint after this step. */
  step?: number;
  adapter?: string;
  /** The role whose adapter is taken, of a run that trained one for each. */
  role?: string;
  /** The base model of an adapter or a run. */
  base?: string;
  /** Its projector, with which it sees images; undefined: that of the run or config, if it has one. */
  mmproj?: string;
  /** True if the run still trains: it may have no weights yet, and later checkpoints are taken. */
  follow?: boolean;
  /** Called with damaged checkpoints. */
  say: (text: string) => void;
  /** Resolves a model's address on a hub to its file; paths stay unchanged. */
  fetch: (address: string) => Promise<string>;
}

/** The policy and settings that a target gives. */
export interface Subject {
  name: string;
  load: (overrides: Partial<LoadModelOptions>) => Promise<LlamaModel>;
  /** The checkpoint whose weights are loaded; null: those of a file. */
  checkpoint: Checkpoint | null;
  /** The role whose adapter a checkpoint gives; null: there is one for all. */
  role: Role;
  /** The adapter's file, or the model's without one; null: weights of a checkpoint, or of a new run. */
  weights: string | null;
  /** The config with tools, sampling and template; null: a plain model's defaults. */
  config: TrainConfig | null;
  configFolder: string;
  sft: SftConfig | null;
  /** File of rows whose first row has the system message that the policy knows, and its column; null: none. */
  rows: { file: string; key: string } | null;
}

/**
 * Finds a policy by its name.
 * @throws ConfigError or DataError; nothing is loaded yet.
 */
export async function findSubject(options: FindSubjectOptions): Promise<Subject> {
  const { mmproj } = options;
  const subject = await findModel(options);
  if (mmproj === undefined) return subject;
  return { ...subject, load: (overrides) => subject.load({ mmproj, ...overrides }) };
}

async function findModel(options: FindSubjectOptions): Promise<Subject> {
  const { target, adapter, step, role } = options;
  if (target === undefined)
    return { ...(await openConfig(demoConfigPath, options)), name: "the embedded policy, a toy" };
  if (isAddress(target)) return openModel(await options.fetch(target), target, await findAdapter(options));
  const path = checkArgument("model, adapter or run", target);
  if (statSync(path).isDirectory()) {
    refuse("--adapter", adapter, "a run has its own adapter");
    return openRun(path, options);
  }
  refuse("--step", step, "it names a checkpoint of a run folder");
  refuse("--role", role, "it names an adapter of a run folder");
  if ([".yaml", ".yml"].includes(extname(path))) return openConfig(path, options);
  const header = await readGguf(path);
  if (header.metadata.get("general.type")?.value !== "adapter")
    return openModel(path, basename(path), await findAdapter(options));
  refuse("--adapter", adapter, `${target} is an adapter itself`);
  return openAdapter(path, options);
}

async function findAdapter({ adapter, fetch }: FindSubjectOptions): Promise<string | undefined> {
  return adapter === undefined ? undefined : fetch(checkArgument("--adapter", adapter));
}

async function findBase({ base, fetch }: FindSubjectOptions): Promise<string | null> {
  return base === undefined ? null : fetch(checkArgument("--base", base));
}

function openModel(path: string, name: string, adapter: string | undefined): Subject {
  const lora = adapter === undefined ? null : { path: adapter };
  // With an adapter, the KV type is that of training, so that the numbers are equal, too.
  const given: LoadModelOptions = { path, lora, trainable: "none", ...(lora ? { kvType: "f32" } : {}) };
  return {
    name: adapter === undefined ? name : `${name} with ${adapter}`,
    load: (overrides) => loadModel({ ...given, ...overrides }),
    checkpoint: null,
    role: null,
    weights: adapter ?? path,
    config: null,
    sft: null,
    configFolder: process.cwd(),
    rows: null,
  };
}

/** The policy of a config, before training. */
async function openConfig(file: string, options: FindSubjectOptions): Promise<Subject> {
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
    checkpoint: null,
    role: null,
    weights: adapter ?? resolvePath(folder, path),
    config,
    sft: null,
    configFolder: folder,
    rows: listRows(config, null, folder),
  };
}

async function openRun(path: string, options: FindSubjectOptions): Promise<Subject> {
  const { follow = false, role, say } = options;
  const at = findStep(path, options.step);
  const trained = await findTrained(at, await findBase(options), say, { isRunning: follow, role });
  const { checkpoint } = trained;
  if (follow && !checkpoint && trained.weights)
    refuse("--follow", path, "the run saved only its weights; following a run needs checkpoints (trainer.save_freq)");
  const after = `${checkpoint ? `, after step ${checkpoint.step}` : ""}${role === undefined ? "" : `, as ${role}`}`;
  const weights = checkpoint || follow ? null : trained.weights;
  return describeTrained(trained, { name: `${path}${after}`, checkpoint, weights }, (overrides) => {
    if (weights !== null) return loadWeights(trained, weights, overrides);
    return checkpoint ? restoreModel(trained.load(overrides), checkpoint, trained.role) : trained.load(overrides);
  });
}

/** An adapter in its run's folder has a known model; for others the user must name it. */
async function openAdapter(path: string, options: FindSubjectOptions): Promise<Subject> {
  const run = dirname(path);
  const base = await findBase(options);
  if (existsSync(join(run, "config.json"))) {
    const trained = await findTrained(run, base, options.say, { role: null });
    return describeTrained(trained, { name: path, checkpoint: null, weights: path }, (overrides) =>
      loadWeights(trained, path, overrides),
    );
  }
  if (base !== null) return openModel(base, basename(base), path);
  throw new ConfigError("is an adapter that does not name its model", {
    code: "config/no-base-model",
    subject: path,
    expected: "the model that it was trained on",
    received: "an adapter outside of a run's folder",
    remedy: `name it: cria chat ${path} --base model.gguf`,
  });
}

function loadWeights(trained: Trained, weights: string, overrides: Partial<LoadModelOptions>): Promise<LlamaModel> {
  const { train, sft, configFolder } = trained;
  const given: LoadModelOptions = trained.lora
    ? { path: trained.base, lora: { path: weights }, trainable: "none", kvType: "f32" }
    : { path: weights, trainable: "none", kvType: "f32" };
  const vision = describeVision(train ? train.actor_rollout_ref.model : sft!.model, configFolder);
  return loadModel({ ...given, ...vision, ...overrides });
}

function describeTrained(
  { train, sft, configFolder, role }: Trained,
  source: Pick<Subject, "name" | "checkpoint" | "weights">,
  load: Subject["load"],
): Subject {
  return { ...source, load, role, config: train, sft, configFolder, rows: listRows(train, sft, configFolder) };
}

function listRows(train: TrainConfig | null, sft: SftConfig | null, folder: string): Subject["rows"] {
  const [file] = (train ?? sft)!.data.train_files;
  if (file === undefined || isAddress(file)) return null;
  return { file: resolvePath(folder, file), key: train ? train.data.prompt_key : sft!.data.messages_key };
}

/**
 * The folder of a run's checkpoint.
 * @throws ConfigError that lists the existing ones.
 */
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
    remedy: "name one of these, or leave --step out for the newest",
  });
}

function refuse(option: string, value: unknown, why: string): void {
  if (value === undefined) return;
  throw new ConfigError("does not apply here", {
    code: "config/bad-argument",
    subject: option,
    expected: "a command without it",
    received: String(value),
    remedy: why,
  });
}
