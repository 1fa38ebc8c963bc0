import { rm } from "node:fs/promises";
import type { PolicyLossOptions } from "@cria/algorithms";
import {
  type ChatMessage,
  ConfigError,
  EngineError,
  hashSeed,
  type PolicyEngine,
  type PolicyVersion,
  type SamplingOptions,
  type TrainResult,
} from "@cria/core";
import { type ChecksOf, checkOptions, optionChecks } from "@cria/core/internal";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import type { Batch } from "./batch.js";
import { type Generation, generate } from "./generation.js";
import { samplingChecks } from "./sampling.js";
import type { PolicyScoreOptions, TokenScores } from "./token-scores.js";
import { translateImages } from "./translate-images.js";
import type { UpdateOptions } from "./update-policy.js";

/**
 * `temperature` is 0 by default: greedy. `seed` decides what is sampled: the same seed and prompt give the same text; default: the
 * policy's.
 */
export interface GenerateTextOptions extends SamplingOptions {
  /** Most tokens, at least 1; default: what is left of the context, which is the most in any case. */
  maxTokens?: number;
  /** Ends the generation; it then throws the signal's reason. */
  signal?: AbortSignal;
}

const { any, number, count, whole, signal, flag } = optionChecks;

const generateChecks: ChecksOf<Required<GenerateTextOptions>> = {
  ...samplingChecks,
  maxTokens: count,
  signal,
};

const updateChecks: ChecksOf<Required<UpdateOptions>> = {
  learningRate: number,
  betas: any,
  weightDecay: number,
  maxGradNorm: any,
  miniBatchSize: count,
  epochs: count,
  shuffle: flag,
  seed: whole,
  step: whole,
  microBatchTokens: any,
  isOnPolicy: flag,
  algorithms: any,
  teacher: any,
  onScores: any,
  beforeStep: any,
  compute: any,
};

export interface PolicyParts {
  engine: PolicyEngine;
  tokenizer: DeltaTokenizer;
  /** Its logprobs without adapter are the reference: the engine itself with LoRA, else a frozen copy; null: none. */
  reference: PolicyEngine | null;
  /** Of sampling, and of what a new adapter starts from. */
  seed: number;
}

/** A model that generates and is trained: one copy of its weights does both. */
export class Policy {
  readonly engine: PolicyEngine;
  readonly tokenizer: DeltaTokenizer;
  readonly reference: PolicyEngine | null;
  readonly seed: number;
  protected updated = 0;

  constructor({ engine, tokenizer, reference, seed }: PolicyParts) {
    this.engine = engine;
    this.tokenizer = tokenizer;
    this.reference = reference;
    this.seed = seed;
  }

  /** How often `train` was called. */
  get updates(): number {
    return this.updated;
  }

  /** The policy that is trained: this one, unless it is a version of another. */
  readonly live: Policy = this;

  /**
   * Keeps the policy as it is after the updates that were asked for: the version goes on to hold conversations while this policy
   * learns. It takes the memory of one adapter, until it is disposed.
   * @param options.path a file that an earlier version was saved to; its values are kept instead.
   * @param options.updates how many updates the version has seen; default: those of this policy.
   * @throws EngineError for a policy without a LoRA adapter, or a file of another one.
   */
  async keepVersion({ path, updates = this.updated }: { path?: string; updates?: number } = {}): Promise<KeptPolicy> {
    const { engine } = this;
    if (!engine.keepVersion) {
      throw new EngineError("keeps no versions of its policy", {
        code: "engine/not-supported",
        subject: engine.info.path,
        expected: "an engine with keepVersion, such as loadModel gives",
        received: "one without",
      });
    }
    return new KeptPolicy(this, await engine.keepVersion(path === undefined ? {} : { path }), updates);
  }

  /**
   * One update: an optimizer step for each mini-batch of each epoch, at the temperature that the batch was sampled at. Old logprobs
   * that the batch does not have are those of the update's own forward pass if it makes one optimizer step, else of a pass before it.
   * @returns a result for each optimizer step; none where no trajectory has a gradient.
   * @throws ConfigError when the loss needs a reference and the policy has none.
   */
  async train(batch: Batch, loss: PolicyLossOptions, options: UpdateOptions): Promise<TrainResult[]> {
    checkOptions("policy.train", options, updateChecks);
    const { updatePolicy } = await import("./update-policy.js");
    const step = options.step ?? this.updated + 1;
    const results = await updatePolicy(this, batch, loss, { ...options, seed: options.seed ?? this.seed, step });
    this.updated++;
    return results;
  }

  /** Logprobs of sequences; those of tokens before the first that counts (`from`, or where the loss mask begins) are 0. */
  async score(
    sequences: readonly { tokenIds: ArrayLike<number>; from?: number; lossMask?: ArrayLike<number> }[],
    { reference = false, temperature, signal, entropy, sumPiSquared, compute }: PolicyScoreOptions = {},
  ): Promise<TokenScores[]> {
    if (sequences.length === 0) return [];
    const ranges = sequences.map(({ tokenIds, from, lossMask }) => ({
      tokenIds,
      from: from ?? (lossMask ? Array.prototype.indexOf.call(lossMask, 1) : undefined),
    }));
    const more = { ...(entropy ? { entropy } : {}), ...(sumPiSquared ? { sumPiSquared } : {}) };
    const old = await this.engine.score(ranges, { temperature, signal, ...(compute ? { compute } : {}), ...more });
    const ref = reference ? await this.scoreReference(ranges, { temperature, signal, compute }) : null;
    return old.map((scores, i) => ({
      oldLogprobs: scores.logprobs,
      entropy: scores.entropy,
      sumPiSquared: scores.sumPiSquared,
      refLogprobs: ref?.[i] ?? null,
      teacherLogprobs: null,
    }));
  }

  /** Logprobs by the reference policy: this one before any training. @throws ConfigError when there is none. */
  async scoreReference(
    sequences: readonly { tokenIds: ArrayLike<number>; from?: number }[],
    { temperature, signal, compute }: Pick<PolicyScoreOptions, "temperature" | "signal" | "compute"> = {},
  ): Promise<Float32Array[]> {
    const { reference } = this;
    if (!reference) {
      throw new ConfigError("has no reference policy", {
        code: "config/no-reference",
        subject: this.engine.info.path,
        expected: "a policy that was loaded with LoRA, or with `reference: true`",
        received: `trainable: ${this.engine.info.trainable}`,
        remedy: 'loadPolicy(path, { lora: null, reference: true }), or a loss without "kl"',
      });
    }
    // A model of its own is here alone.
    const elsewhere = compute && reference === this.engine ? { compute } : {};
    const shown = sequences.map((sequence) => ({
      ...sequence,
      tokenIds: translateImages(sequence.tokenIds, this.engine, reference),
    }));
    const scores = await reference.score(shown, { temperature, signal, adapter: false, ...elsewhere });
    return scores.map(({ logprobs }) => logprobs);
  }

  /**
   * The assistant's next message: await the text, or iterate over its pieces. Tools are not called.
   * @param prompt a user's message, or a conversation.
   * @throws ConfigError, at once, for an option that is unknown or wrong; (to who awaits or iterates) when the prompt fills the context; TokenizerError when the chat template cannot
   * render it.
   */
  generate(prompt: string | readonly ChatMessage[], options: GenerateTextOptions = {}): Generation {
    checkOptions("policy.generate", options, generateChecks);
    const messages = typeof prompt === "string" ? [{ role: "user" as const, content: prompt }] : prompt;
    const seed = hashSeed(options.seed ?? this.seed, "generate");
    return generate(this.engine, this.tokenizer, messages, { ...options, seed });
  }

  /** Writes the trained weights as a GGUF that stock llama.cpp loads: with LoRA the adapter, else the model. @throws EngineError */
  async save(file: string): Promise<void> {
    await (this.engine.info.trainable === "lora" ? this.engine.saveAdapter(file) : this.engine.saveModel(file));
  }

  /**
   * Writes a whole model: with LoRA the adapter merged into its base.
   * @param quantize type of the weights' matrices, "q8_0" for example; default: as they are.
   * @throws EngineError when it cannot be written or the type is unknown.
   */
  async export(file: string, { quantize }: { quantize?: string } = {}): Promise<void> {
    const { exportModel } = await import("@cria/engine");
    const weights = `${file}.weights`;
    await this.save(weights);
    try {
      const isLora = this.engine.info.trainable === "lora";
      const base = isLora ? { base: this.engine.info.path, adapter: weights } : { base: weights };
      await exportModel({ ...base, output: file, quantize: quantize ?? null });
    } finally {
      await rm(weights, { force: true });
    }
  }

  /** Ends what is in flight and frees the memory. May be called twice. */
  async dispose(): Promise<void> {
    try {
      if (this.reference !== this.engine) await this.reference?.dispose();
    } finally {
      await this.engine.dispose();
    }
  }
}

/** A policy as it was after some update, while the live one learns. `policy.keepVersion` makes it; `dispose` frees it alone. */
export class KeptPolicy extends Policy {
  constructor(
    override readonly live: Policy,
    private readonly version: PolicyVersion,
    updates: number,
  ) {
    super({ engine: version.engine, tokenizer: live.tokenizer, reference: live.reference, seed: live.seed });
    this.updated = updates;
  }

  /** @throws ConfigError: the live policy is trained. */
  override train(): Promise<TrainResult[]> {
    const error = new ConfigError("is a kept version, which does not change", {
      code: "config/kept-version",
      subject: "policy.train",
      expected: "the policy that the version was kept of",
      received: `its version after ${this.updated} updates`,
    });
    return Promise.reject(error);
  }

  override save(file: string): Promise<void> {
    return this.version.saveAdapter(file);
  }

  /** Frees the version. @throws EngineError (`engine/version-in-use`) while one of its conversations goes on. */
  override dispose(): Promise<void> {
    return this.version.dispose();
  }
}
