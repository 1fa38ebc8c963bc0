import { ClusterError, CriaError } from "@cria/core";
import { inspectVision, type LlamaModel } from "@cria/engine";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import type { Environment, Report, Task, TrainConfig } from "@cria/trainer";
import { openConversations, openLosses, readLag } from "@cria/trainer/internal";
import type { JobBus } from "../bus/job-bus.js";
import { cleanText } from "../bus/job-record.js";
import { readImageLimits } from "../images/image-limits.js";
import { WorkerImages } from "../images/worker-images.js";
import type { RunDescription } from "../jobs/run-description.js";
import { findModel } from "../models/find-model.js";
import { type FoundUserCode, findUserCode, type UserCodePlaces } from "../user-code/find-user-code.js";
import { BUILT_IN } from "../user-code/identify-user-code.js";
import { checkInside, listConversationFiles, listLossFiles, type NamedFile } from "../user-code/named-files.js";
import type { ModelOverrides, ModelSlot } from "./model-slot.js";
import { PolicyPlaces } from "./policy-places.js";
import { type DescribedRun, readDescription } from "./read-description.js";
import type { WeightsCache } from "./weights-cache.js";

type Losses = Awaited<ReturnType<typeof openLosses>>;

/** The parts of a run that a worker is prepared for. */
export interface PreparedRun {
  sha: string;
  /** Class of its bits; empty without a model. */
  class: string;
  /** The model, if it is available and useful. */
  engine: LlamaModel | null;
  /** The weights of its jobs; null without an engine. */
  policies: PolicyPlaces | null;
  /** Images of its jobs, under the config's limits; null without an engine. */
  images: WorkerImages | null;
  /** Needed for conversations; null: it holds none. */
  conversations: { environment: Environment; tokenizer: DeltaTokenizer } | null;
  /** True if its scores equal the coordinator's. */
  scores: boolean;
  /** Needed for gradients; null: it computes none. */
  losses: Losses | null;
  /** Reasons why it does not do everything. */
  lacks: string[];
  /** True if missing parts may become available: it may be prepared again. */
  mayComeBy: boolean;
  /** Searches missing user code again, and resolves to true if it is there now; null: none is missing. Never rejects. */
  findMissingCode: (() => Promise<boolean>) | null;
  /** Disposes of tools and versions of the policy; the model stays. Never rejects. */
  dispose(): Promise<void>;
}

export interface PrepareOptions {
  bus: Pick<JobBus, "blobs">;
  models: ModelSlot;
  weights: WeightsCache;
  places: UserCodePlaces;
  modelDir?: string;
  /** Options for loading the model on this machine. */
  load: Omit<ModelOverrides, "path" | "mmproj">;
  report?: Report;
  signal: AbortSignal;
}

/** Codes of transient failures: an unreachable hub, a blob in transit, a bus that did not answer for a while. */
const PASSING = /^(hub\/|cluster\/blob-|cluster\/no-model|cluster\/no-answer)/;

/**
 * Prepares for a run as far as possible: without the user code it may compute gradients, with other bits it may hold
 * conversations.
 * @throws only the signal's reason.
 */
export async function prepareRun(sha: string, options: PrepareOptions): Promise<PreparedRun> {
  const { signal } = options;
  const prepared: PreparedRun = {
    sha,
    class: "",
    engine: null,
    policies: null,
    images: null,
    conversations: null,
    scores: false,
    losses: null,
    lacks: [],
    mayComeBy: false,
    findMissingCode: null,
    dispose: async () => undefined,
  };
  /** Undefined, and a text in `lacks`, after a failure. */
  const attempt = async <T>(what: string, work: () => T | Promise<T>): Promise<T | undefined> => {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      const { message, code } = error as { message?: string; code?: unknown };
      prepared.lacks.push(cleanText(`${what}: ${String(message ?? error).replace(/\n\s*/g, "; ")}`));
      if (error instanceof CriaError && PASSING.test(String(code))) prepared.mayComeBy = true;
      return undefined;
    }
  };
  const run = await attempt("cannot take part", () => readDescription(options.bus, sha));
  if (run === undefined) return prepared;
  const { description, config } = run;
  const found = await attempt("holds no conversations", () => locate(run, options));
  if (!found) {
    prepared.findMissingCode = () =>
      locate(run, options).then(
        () => true,
        () => false,
      );
  }
  const engine = await attempt("has no model", () => loadModel(run, found, options));
  if (engine === undefined) return prepared;
  const { models, weights } = options;
  const ownClass = await attempt("cannot compute the class of its bits", () =>
    models.findClass(description.model.sha256, description.weights, (wanted) => weights.get(wanted), signal),
  );
  if (ownClass === undefined) return prepared;
  prepared.mayComeBy = false;
  prepared.class = ownClass;
  prepared.engine = engine;
  const policies = new PolicyPlaces(engine, (wanted) => weights.get(wanted), { lag: readLag(config) });
  prepared.policies = policies;
  prepared.dispose = () => policies.dispose();
  prepared.images = new WorkerImages(options.bus.blobs, readImageLimits(config));
  const isOwn = ownClass === description.class;
  const holdsOthers = config.cluster.other_classes === "rollout";
  if (!isOwn) {
    prepared.lacks.push(
      `computes other bits than the coordinator, class ${ownClass} instead of ${cleanText(description.class)}: ` +
        (holdsOthers ? "it only holds conversations" : "cluster.other_classes refuses it"),
    );
  }
  if (found && (isOwn || holdsOthers)) {
    const opened = await attempt("holds no conversations", () => openRunConversations(run, found, options));
    const tokenizer = await attempt("holds no conversations", () =>
      DeltaTokenizer.forModel(engine, {
        kwargs: config.data.apply_chat_template_kwargs,
        allowControlTokens: config.data.allow_control_tokens,
      }),
    );
    if (opened)
      prepared.dispose = async () => {
        await policies.dispose();
        await opened.dispose().catch(() => undefined);
      };
    if (opened && tokenizer) prepared.conversations = { environment: opened.environment, tokenizer };
  }
  prepared.scores = isOwn;
  if (isOwn) {
    prepared.losses =
      (await attempt("computes no gradients", () => {
        if (!found) refuseFiles(listLossFiles(config));
        return openLosses(config, found?.folder ?? options.places.folder);
      })) ?? null;
  }
  return prepared;
}

/** @throws Error that explains why the user code is missing. */
async function locate({ description, config }: DescribedRun, { places }: PrepareOptions): Promise<FoundUserCode> {
  const { userCode } = description;
  const found = await findUserCode(userCode, config, places);
  if (typeof found === "string") throw new Error(found);
  const files = [...listConversationFiles(config), ...listLossFiles(config)];
  if (userCode.kind === "package" && userCode.name === BUILT_IN) refuseFiles(files);
  checkInside(
    found.folder,
    files.filter((file) => !isOwnFile(file, found.task)),
  );
  return found;
}

/** Files of a task in memory come from the worker's own task, not from the config's paths. */
function isOwnFile({ key }: NamedFile, task: Task<object> | undefined): boolean {
  if (key === "multi_turn.tool_config_path") return task?.definition.tools !== undefined;
  return key === "multi_turn.interaction_config_path" && task?.definition.interaction !== undefined;
}

function refuseFiles(files: readonly NamedFile[]): void {
  if (files.length === 0) return;
  throw new Error(`without the user code there is no ${files.map(({ value }) => value).join(", ")}`);
}

async function loadModel(
  { description, config }: DescribedRun,
  found: { folder: string } | undefined,
  { bus, models, places, modelDir, load, report, signal }: PrepareOptions,
): Promise<LlamaModel> {
  const { model, projector } = description;
  if (projector) checkVision();
  const options = { bus, modelDir, report, signal };
  const path = await findModel(model, options);
  const mmproj = projector ? await findModel(projector, { ...options, kind: "projector" }) : undefined;
  const hashes = [model.sha256, projector?.sha256 ?? ""];
  return models.open(hashes, config, found?.folder ?? places.folder, { ...load, path, mmproj });
}

/**
 * Checked before useless files are fetched.
 * @throws ClusterError "cluster/no-vision" with what to install.
 */
function checkVision(): void {
  const { problem, remedy } = inspectVision();
  if (problem === null) return;
  throw new ClusterError("cannot see the images of this training", {
    code: "cluster/no-vision",
    subject: "this worker",
    expected: "the library that opens projectors and pictures, libcria-vision.so",
    received: problem,
    remedy: remedy ?? undefined,
  });
}

async function openRunConversations(
  { description, config }: DescribedRun,
  { folder, task }: FoundUserCode,
  { report }: PrepareOptions,
) {
  const opened = await openTraced(config, folder, task, report);
  const { environment } = opened;
  setFormat(environment, description);
  return opened;
}

/** Opens tracing; a worker without the package for spans still holds conversations. */
async function openTraced(config: TrainConfig, folder: string, task: Task<object> | undefined, report?: Report) {
  try {
    return await openConversations(config, folder, { task, report });
  } catch (error) {
    if (!(error instanceof CriaError) || error.code !== "config/no-tracing") throw error;
    report?.({ type: "warning", text: `conversations are not traced here\n  ${error.message}` });
    const trainer = { ...config.trainer, tracing: "off" as const };
    return openConversations({ ...config, trainer }, folder, { task, report });
  }
}

function setFormat(environment: Environment, { toolFormat }: RunDescription): void {
  if (toolFormat !== null) environment.multiTurn = { ...environment.multiTurn, format: toolFormat };
}
