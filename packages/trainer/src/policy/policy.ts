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
  type ScoreOptions,
  type ScoreResult,
  type ToolSchema,
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
 * `temperature` defaults to 0, which is greedy. `seed` determines the sampled tokens: the same seed and prompt give the
 * same text; default: the policy's seed.
 */
export interface GenerateTextOptions extends SamplingOptions {
  /** Maximum number of tokens, at least 1; default and upper limit: the rest of the context. */
  maxTokens?: number;
  /** Aborting it ends the generation, which then throws the signal's reason. */
  signal?: AbortSignal;
}

const { any, text, number, count, whole, signal, flag } = optionChecks;

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
  correction: any,
  algorithms: any,
  teacher: any,
  demonstrations: any,
  onScores: any,
  beforeStep: any,
  compute: any,
};

const scoreChecks: ChecksOf<Required<PolicyScoreOptions>> = {
  temperature: number,
  entropy: flag,
  sumPiSquared: flag,
  reference: flag,
  signal,
  compute: any,
};

/** Checks of the options of `keepVersion`. */
export const keepChecks: ChecksOf<{ path: string; updates: number }> = { path: text, updates: whole };

export interface PolicyParts {
  engine: PolicyEngine;
  tokenizer: DeltaTokenizer;
  /**
   * Engine of the reference logprobs, computed without adapter: the policy's engine with LoRA, else a frozen copy;
   * null: none.
   */
  reference: PolicyEngine | null;
  /** Seed of sampling and of a new adapter's initial values. */
  seed: number;
}

/** A model that generates and is trained with a single copy of its weights. */
export class Policy {
  readonly engine: PolicyEngine;
  readonly tokenizer: DeltaTokenizer;
  readonly reference: PolicyEngine | null;
  readonly seed: number;
  /** The policy of each role, if each has an adapter of its own; null: this policy plays all roles. */
  readonly roles: ReadonlyMap<string, Policy> | null = null;
  protected updated = 0;

  constructor({ engine, tokenizer, reference, seed }: PolicyParts) {
    this.engine = engine;
    this.tokenizer = tokenizer;
    this.reference = reference;
    this.seed = seed;
  }

  /** Number of updates: completed calls of `train`. */
  get updates(): number {
    return this.updated;
  }

  /** The trained policy: this one, unless this is a kept version of another. */
  readonly live: Policy = this;

  /**
   * Keeps a version of the policy as it is now. The version can continue to hold conversations while this policy is
   * trained. It uses the memory of the trained weights, an adapter or the whole model, until it is disposed. With
   * `path`, a file with a saved earlier version, the values of that are kept instead. `updates` is the version's number
   * of updates; default: those of this policy.
   * @throws EngineError for a file with the weights of another policy; ConfigError for an unknown or wrong option.
   */
  async keepVersion(options: { path?: string; updates?: number } = {}): Promise<KeptPolicy> {
    checkOptions("policy.keepVersion", options, keepChecks);
    const { path, updates = this.updated } = options;
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
   * Makes one update: an optimizer step for each mini-batch of each epoch, at the temperature of the batch. If the
   * batch has no old logprobs, they come from the update's own forward pass if it makes only one optimizer step, else
   * from a pass before it.
   * @returns a result for each optimizer step; none if no trajectory has a gradient.
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

  /**
   * Tokenizes a conversation as a demonstration of `train`: the mask is 1 on the assistant's tokens.
   * @throws TokenizerError when the chat template cannot render it.
   */
  encodeConversation(
    messages: readonly ChatMessage[],
    tools: readonly ToolSchema[] = [],
  ): { tokenIds: Int32Array; lossMask: Uint8Array } {
    const { tokenIds, mask } = this.tokenizer.encodeMessagesWithMask(messages, tools);
    return { tokenIds, lossMask: mask };
  }

  /**
   * Computes logprobs of sequences. Tokens before `from`, or before the first token in the loss mask, have 0.
   * @throws ConfigError for an unknown or wrong option; as `scoreReference`, with `reference`.
   */
  async score(
    sequences: readonly { tokenIds: ArrayLike<number>; from?: number; lossMask?: ArrayLike<number> }[],
    options: PolicyScoreOptions = {},
  ): Promise<TokenScores[]> {
    checkOptions("policy.score", options, scoreChecks);
    const { reference = false, temperature, signal, entropy, sumPiSquared, compute } = options;
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
      teacherLikeliest: null,
    }));
  }

  /**
   * Computes logprobs by the reference policy, which is this policy before training.
   * @throws ConfigError when there is none.
   */
  async scoreReference(
    sequences: readonly { tokenIds: ArrayLike<number>; from?: number }[],
    options: Pick<PolicyScoreOptions, "temperature" | "signal" | "compute"> = {},
  ): Promise<Float32Array[]> {
    return (await this.evaluateReference(sequences, options)).map(({ logprobs }) => logprobs);
  }

  /**
   * Computes logprobs by the reference policy, and its likeliest tokens on request.
   * @throws ConfigError as `scoreReference`.
   */
  async evaluateReference(
    sequences: readonly { tokenIds: ArrayLike<number>; from?: number }[],
    { temperature, signal, compute, likeliest }: Pick<ScoreOptions, "temperature" | "signal" | "compute" | "likeliest">,
  ): Promise<ScoreResult[]> {
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
    // A separate reference model exists only in this process.
    const elsewhere = compute && reference === this.engine ? { compute } : {};
    const shown = sequences.map((sequence) => ({
      ...sequence,
      tokenIds: translateImages(sequence.tokenIds, this.engine, reference),
    }));
    const more = { ...elsewhere, ...(likeliest ? { likeliest } : {}) };
    return reference.score(shown, { temperature, signal, adapter: false, ...more });
  }

  /**
   * Generates the assistant's next message: await the text, or iterate over its pieces. Tools are not called.
   * @param prompt a user's message, or a conversation.
   * @throws ConfigError immediately for an unknown or wrong option. On await or iteration: ConfigError when the prompt
   * fills the context; TokenizerError when the chat template cannot render it.
   */
  generate(prompt: string | readonly ChatMessage[], options: GenerateTextOptions = {}): Generation {
    checkOptions("policy.generate", options, generateChecks);
    const messages = typeof prompt === "string" ? [{ role: "user" as const, content: prompt }] : prompt;
    const seed = hashSeed(options.seed ?? this.seed, "generate");
    return generate(this.engine, this.tokenizer, messages, { ...options, seed });
  }

  /**
   * Writes the trained weights as a GGUF that stock llama.cpp loads: the adapter with LoRA, else the model.
   * @throws EngineError
   */
  async save(file: string): Promise<void> {
    await (this.engine.info.trainable === "lora" ? this.engine.saveAdapter(file) : this.engine.saveModel(file));
  }

  /**
   * Writes a whole model; with LoRA the adapter is merged into its base.
   * @param quantize type of the weight matrices, for example "q8_0"; default: unchanged.
   * @throws EngineError when it cannot be written or the type is unknown; ConfigError for an unknown option.
   */
  async export(file: string, options: { quantize?: string } = {}): Promise<void> {
    checkOptions("policy.export", options, { quantize: text });
    const { quantize } = options;
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

  /** Ends running work and frees the memory. May be called twice. */
  async dispose(): Promise<void> {
    try {
      if (this.reference !== this.engine) await this.reference?.dispose();
    } finally {
      await this.engine.dispose();
    }
  }
}

/**
 * A policy as it was after some update, while the live policy is trained further. Created by `policy.keepVersion`;
 * `dispose` frees only this version.
 */
export class KeptPolicy extends Policy {
  constructor(
    override readonly live: Policy,
    private readonly version: PolicyVersion,
    updates: number,
    override readonly roles: ReadonlyMap<string, KeptPolicy> | null = null,
  ) {
    super({ engine: version.engine, tokenizer: live.tokenizer, reference: live.reference, seed: live.seed });
    this.updated = updates;
  }

  /** @throws ConfigError always: only the live policy is trained. */
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
    return this.version.save(file);
  }

  /** Frees the version. @throws EngineError (`engine/version-in-use`) while one of its conversations is running. */
  override dispose(): Promise<void> {
    return this.version.dispose();
  }
}
