import { type LlamaModel, type LlamaSequence, loadModel } from "@cria/engine";

export interface CriaDecoderOptions {
  path: string;
  threads: number;
  /** Most sequences at once; each `run` uses some of them. */
  sequences: number;
  contextSize: number;
  flashAttention: boolean;
  deterministic: boolean;
  prompt: readonly number[];
}

export interface CriaRun {
  tokens: number[][];
  logprobs: number[][];
  /** The likeliest tokens in place of each, if they were asked for. */
  top: { id: number; logprob: number }[][][];
  /** Whole time as the caller sees it, and the part of it inside llama_decode. */
  seconds: number;
  llamaSeconds: number;
}

/** Ours: one root sequence holds the prompt, forks of it generate. KV is F16. */
export class CriaDecoder {
  private forks: LlamaSequence[] = [];

  private constructor(
    private readonly model: LlamaModel,
    private readonly root: LlamaSequence,
  ) {}

  static async load(options: CriaDecoderOptions): Promise<CriaDecoder> {
    const { path, threads, contextSize, flashAttention, deterministic } = options;
    const model = await loadModel({
      path,
      threads,
      contextSize,
      flashAttention,
      deterministic,
      // Each round samples the same tokens.
      drafting: false,
      device: "cpu",
      kvType: "f16",
      maxSequences: options.sequences + 1,
    });
    const root = model.createSequence();
    await root.prefill(options.prompt);
    return new CriaDecoder(model, root);
  }

  get vocabularySize(): number {
    return this.model.info.vocabSize;
  }

  /** Forks the prompt, and evaluates one more token in each fork, which also copies its KV. */
  async prepare(first: readonly number[]): Promise<void> {
    for (const fork of this.forks) fork.dispose();
    this.forks = first.map(() => this.root.fork());
    await Promise.all(this.forks.map((fork, i) => fork.prefill([first[i]!])));
  }

  /**
   * Samples `steps` tokens in each fork, which goes on with one token: `steps` evaluations for all of them together.
   */
  async run(next: readonly number[], steps: number, temperature: number, topLogprobs = 0): Promise<CriaRun> {
    const before = this.model.schedulerStats();
    const started = performance.now();
    const results = await Promise.all(
      this.forks.map((fork, i) =>
        fork.generate([next[i]!], { maxTokens: steps, temperature, seed: i + 1, stopTokens: [], topLogprobs }),
      ),
    );
    const seconds = (performance.now() - started) / 1000;
    const after = this.model.schedulerStats();
    return {
      tokens: results.map(({ tokenIds }) => [...tokenIds]),
      logprobs: results.map(({ logprobs }) => [...logprobs]),
      top: results.map(({ topLogprobs }) => topLogprobs ?? []),
      seconds,
      llamaSeconds: after.llamaSeconds - before.llamaSeconds,
    };
  }

  dispose(): Promise<void> {
    return this.model.dispose();
  }
}
