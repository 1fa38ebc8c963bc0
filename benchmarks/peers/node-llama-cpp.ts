import {
  getLlama,
  type Llama,
  type LlamaContextSequence,
  LlamaLogLevel,
  type LlamaModel,
  type Token,
} from "node-llama-cpp";

let llama: Promise<Llama> | undefined;

export interface NodeLlamaOptions {
  path: string;
  threads: number;
  /** Most sequences at once; each `run` uses some of them. */
  sequences: number;
  contextSize: number;
  flashAttention: boolean;
  prompt: readonly number[];
}

/**
 * node-llama-cpp with its own batching: one context, a loop of `sequence.evaluate` for each sequence, on which its
 * completion and chat classes are built, without their work for text. KV is F16, its default.
 */
export class NodeLlamaDecoder {
  private constructor(
    private readonly model: LlamaModel,
    private readonly sequences: LlamaContextSequence[],
    private readonly options: NodeLlamaOptions,
  ) {}

  static async load(options: NodeLlamaOptions): Promise<NodeLlamaDecoder> {
    // No limit of all contexts together: each has its own number of threads, and one runs at a time.
    llama ??= getLlama({ gpu: false, build: "never", maxThreads: 0, logLevel: LlamaLogLevel.error });
    const model = await (await llama).loadModel({ modelPath: options.path, ignoreMemorySafetyChecks: true });
    const context = await model.createContext({
      sequences: options.sequences,
      contextSize: options.contextSize,
      threads: options.threads,
      flashAttention: options.flashAttention,
      ignoreMemorySafetyChecks: true,
    });
    const sequences = Array.from({ length: options.sequences }, () => context.getSequence());
    return new NodeLlamaDecoder(model, sequences, options);
  }

  /** Leaves the prompt in the first `count` sequences, and one more token each if given. */
  async prepare(count: number, first: readonly number[] = []): Promise<void> {
    const { prompt } = this.options;
    await Promise.all(
      this.sequences.slice(0, count).map(async (sequence, i) => {
        if (sequence.nextTokenIndex === 0) await sequence.evaluateWithoutGeneratingNewTokens(prompt as Token[]);
        else await sequence.eraseContextTokenRanges([{ start: prompt.length, end: sequence.nextTokenIndex }]);
        if (first[i] !== undefined) await sequence.evaluateWithoutGeneratingNewTokens([first[i] as Token]);
      }),
    );
  }

  /** Samples `steps` tokens in each of the first `next.length` sequences, which go on with one token each. */
  async run(next: readonly number[], steps: number, temperature: number): Promise<number[][]> {
    return Promise.all(
      next.map(async (token, i) => {
        const sampled: number[] = [];
        // The whole vocabulary, as ours and as training needs it; their defaults cut it to 40 candidates.
        const options = { temperature, topK: 0, topP: 1, minP: 0, seed: i + 1, yieldEogToken: true };
        for await (const id of this.sequences[i]!.evaluate([token as Token], options)) {
          sampled.push(id);
          if (sampled.length === steps) break;
        }
        return sampled;
      }),
    );
  }

  dispose(): Promise<void> {
    return this.model.dispose();
  }
}
