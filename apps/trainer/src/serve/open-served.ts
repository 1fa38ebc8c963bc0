import { basename } from "node:path";
import type { Device } from "@cria/core";
import type { LlamaModel } from "@cria/engine";
import type { ChatSampling } from "@cria/rollout";
import { type ServedModel, serveEngine } from "@cria/serve";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { type Checkpoint, openRegistries, type TrainConfig } from "@cria/trainer";
import { importMultiTurn, importSampling, nameForRole, openMultiTurn, restoreEngines } from "@cria/trainer/internal";
import { version } from "../assets/version.js";
import { type FindSubjectOptions, findSubject, type Subject } from "../subject/find-subject.js";
import { makePlainMultiTurn } from "../subject/plain-multi-turn.js";
import { describeWeights, makeFingerprint } from "./fingerprint.js";
import { readTokenBytes } from "./token-bytes.js";

export interface OpenServedOptions extends FindSubjectOptions {
  /** Name for clients; default: the model's file name. */
  alias?: string;
  /** Tokens of a conversation. */
  context?: number;
  /** Tokens that a large image is scaled down to; default: the run's, else the projector file's. */
  imageMaxTokens?: number;
  /** Conversations at once. */
  parallel?: number;
  device?: Device;
  threads?: number;
  /** True if equal seeds give equal answers regardless of concurrent work. */
  deterministic: boolean;
  /** Gets warnings for the user. */
  onWarning: (warning: string) => void;
}

/** A loaded model to serve. */
export interface Served {
  model: ServedModel;
  engine: LlamaModel;
  /** Description of the loaded model. */
  name: string;
  /** Takes the weights of another checkpoint of the run. The engine must be idle meanwhile. */
  take(checkpoint: Checkpoint): Promise<void>;
}

/**
 * Loads the model to serve.
 * @throws ConfigError, DataError or EngineError; nothing stays open then.
 */
export async function openServed(options: OpenServedOptions): Promise<Served> {
  const subject = await findSubject(options);
  const { context, parallel, imageMaxTokens, device, threads, deterministic } = options;
  const engine = await subject.load({
    contextSize: context,
    maxSequences: parallel,
    deterministic,
    ...(imageMaxTokens ? { imageMaxTokens } : {}),
    ...(device ? { device } : {}),
    ...(threads ? { threads } : {}),
  });
  try {
    return await describeServed(options, subject, engine);
  } catch (error) {
    await engine.dispose();
    throw error;
  }
}

async function describeServed(options: OpenServedOptions, subject: Subject, engine: LlamaModel): Promise<Served> {
  const { alias, deterministic, onWarning } = options;
  const { config, configFolder, sft } = subject;
  const { info } = engine;
  const tokenizer = DeltaTokenizer.forModel(engine, {
    kwargs: config?.data.apply_chat_template_kwargs,
    allowControlTokens: (config ?? sft)?.data.allow_control_tokens,
  });
  const { format } = config
    ? await openMultiTurn(importMultiTurn(config), configFolder, openRegistries())
    : makePlainMultiTurn(tokenizer);
  const fingerprintOf = async (checkpoint: Checkpoint | null) =>
    makeFingerprint({
      version,
      info,
      projector: engine.images?.info,
      deterministic,
      weights: await nameWeights(subject, checkpoint, info.path),
    });
  let fingerprint = await fingerprintOf(subject.checkpoint);
  let policyVersion = subject.checkpoint?.step ?? 0;
  const model = serveEngine({
    engine,
    tokenizer,
    format,
    name: alias ?? basename(info.path).replace(/\.gguf$/, ""),
    fingerprint: () => fingerprint,
    policyVersion: () => policyVersion,
    sampling: readSampling(config),
    stop: config?.actor_rollout_ref.rollout.stop ?? [],
    bytesOf: await readTokenBytes(info.path),
    countInUse: () => {
      const { sequences, requests } = engine.schedulerStats();
      return { sequences, requests };
    },
    onWarning,
  });
  return {
    model,
    engine,
    name: subject.name,
    async take(checkpoint) {
      const next = await fingerprintOf(checkpoint);
      await restoreEngines(checkpoint, { [nameForRole("actor", subject.role)]: engine });
      fingerprint = next;
      policyVersion = checkpoint.step;
    },
  };
}

/** null when the model's own file has all weights. */
async function nameWeights(subject: Subject, checkpoint: Checkpoint | null, modelPath: string): Promise<string | null> {
  const { weights, role } = subject;
  if (checkpoint) return describeWeights({ checkpoint, role });
  return weights === null || weights === modelPath || basename(weights) === basename(modelPath)
    ? null
    : describeWeights({ adapter: weights });
}

/** Defaults of requests: the run's sampling; for a plain model temperature 1, as in the APIs. */
function readSampling(config: TrainConfig | null): ChatSampling {
  if (!config) return { temperature: 1 };
  const { n: _, tree: __, ...sampling } = importSampling(config);
  return sampling;
}
