import { makeUniform, type PolicyEngine, type PolicySequence, type TrainSequence } from "@cria/core";
import type { TrainConfig } from "@cria/trainer";
import { importSettings, loadConfiguredModel, readContextSize } from "@cria/trainer/internal";
import { weightedSum } from "../check-model/slopes.js";

/** Tokens per second on this machine. */
export interface Speeds {
  /** Evaluation of prompts, each once for its group. */
  prompts: number;
  /** Sampling, with as many conversations at once as the config allows. */
  sampling: number;
  /** An update on whole conversations: a prompt counts for each of its samples. */
  update: number;
}

/** The size of a step. */
export interface StepSize {
  prompts: number;
  samples: number;
  /** Passes over the step's batch. */
  epochs: number;
  /** Most tokens. */
  promptLength: number;
  responseLength: number;
}

export interface TimeNeed {
  speeds: Speeds;
  size: StepSize;
  /** Conversations that sampled at once when it was measured. */
  conversations: number;
  /** Seconds of a step if every response is as long as allowed, and if every one is half as long. */
  step: { longest: number; half: number };
  /** Number of the run's steps; null: the config leaves it to the number of rows. */
  steps: number | null;
}

/** Sampled by each conversation, after as many that warm up. */
const SAMPLED = 12;
/** Most tokens of the measured update. */
const UPDATED = 4096;
/** A shorter first update warms up, and a second one is measured. */
const WARM_MS = 2000;

/**
 * Loads the config's model with a new adapter and measures how fast this machine samples from it and trains it.
 * Nothing is written. Tools, judges, references, teachers, measured values of turns and validation take time beside
 * this.
 * @param onProgress called with the share that is done, and the part that begins.
 * @throws EngineError when the model cannot be loaded.
 */
export async function measureTime(
  config: TrainConfig,
  folder: string,
  onProgress: (done: number, part: string) => void = () => {},
): Promise<TimeNeed> {
  const { environment, sampling, data, updates, steps } = importSettings(config);
  const size: StepSize = {
    prompts: data.batchSize,
    samples: sampling.n,
    epochs: updates.epochs,
    promptLength: environment.maxPromptLength,
    responseLength: environment.maxResponseLength,
  };
  onProgress(0, "the model");
  // Room for short responses too.
  const contextSize = readContextSize(config) + 2 * (SAMPLED + 1);
  const engine = await loadConfiguredModel(makeBare(config), folder, { contextSize });
  try {
    onProgress(0.1, "sampling");
    const random = makeUniform(1);
    const draw = (count: number) =>
      Int32Array.from({ length: count }, () => Math.floor(random() * engine.info.vocabSize));
    const conversations = Math.min(engine.info.maxSequences, size.prompts * size.samples);
    const { prompts, sampled } = await measureSampling(engine, conversations, size, draw);
    onProgress(0.5, "an update");
    const update = await measureUpdate(engine, size, updates.microBatchTokens, draw);
    const speeds = { prompts, sampling: sampled, update };
    return {
      speeds,
      size,
      conversations,
      step: {
        longest: estimateStep(speeds, size),
        half: estimateStep(speeds, { ...size, responseLength: size.responseLength / 2 }),
      },
      steps,
    };
  } finally {
    await engine.dispose();
  }
}

/** Seconds of sampling and updating, if every prompt and every response has its greatest length. */
export function estimateStep(
  { prompts, sampling, update }: Speeds,
  { prompts: count, samples, epochs, promptLength, responseLength }: StepSize,
): number {
  const conversations = count * samples;
  return (
    (count * promptLength) / prompts +
    (conversations * responseLength) / sampling +
    (epochs * conversations * (promptLength + responseLength)) / update
  );
}

/** An adapter need not exist yet, and the time of images is not measured. */
function makeBare(config: TrainConfig): TrainConfig {
  const { actor_rollout_ref: actor } = config;
  const model = { ...actor.model, lora_adapter_path: null, mmproj: null };
  const isAdapter = actor.model.lora_adapter_path !== null && actor.model.lora_rank === 0;
  return {
    ...config,
    actor_rollout_ref: { ...actor, model: isAdapter ? { ...model, lora_rank: 8, lora_alpha: 8 } : model },
  };
}

type Draw = (count: number) => Int32Array;

async function measureSampling(
  engine: Pick<PolicyEngine, "createSequence">,
  conversations: number,
  { samples, promptLength }: StepSize,
  draw: Draw,
) {
  const groups = Array.from({ length: Math.ceil(conversations / samples) }, () => engine.createSequence());
  const open: PolicySequence[] = [...groups];
  try {
    const began = performance.now();
    await Promise.all(groups.map((group) => group.prefill(draw(promptLength))));
    const prompts = (groups.length * promptLength * 1000) / (performance.now() - began);
    const places = Array.from({ length: conversations }, (_, i) => groups[Math.floor(i / samples)]!.fork());
    open.push(...places);
    const sample = () =>
      Promise.all(places.map((place, i) => place.generate(draw(1), { maxTokens: SAMPLED, stopTokens: [], seed: i })));
    await sample();
    const started = performance.now();
    await sample();
    return { prompts, sampled: (conversations * SAMPLED * 1000) / (performance.now() - started) };
  } finally {
    for (const sequence of open) sequence.dispose();
  }
}

/** Gradients of some samples of one prompt; the weights stay as they are. */
async function measureUpdate(
  engine: Pick<PolicyEngine, "train">,
  { samples, promptLength, responseLength }: StepSize,
  microBatchTokens: number | null,
  draw: Draw,
): Promise<number> {
  const length = promptLength + responseLength;
  const count = Math.max(1, Math.min(samples, Math.floor(UPDATED / length)));
  const prompt = draw(promptLength);
  const batch = Array.from({ length: count }, (): TrainSequence => {
    const tokenIds = [...prompt, ...draw(responseLength)];
    return {
      tokenIds,
      lossMask: tokenIds.map((_, t) => (t >= promptLength ? 1 : 0)),
      columns: { weights: tokenIds.map(() => 1 / length) },
    };
  });
  const time = async () => {
    const began = performance.now();
    await engine.train(batch, weightedSum, null, { microBatchTokens: microBatchTokens ?? undefined });
    return performance.now() - began;
  };
  const first = await time();
  // The first update allocates its memory, which takes longer than a small model's update itself.
  return (count * length * 1000) / (first < WARM_MS ? await time() : first);
}
