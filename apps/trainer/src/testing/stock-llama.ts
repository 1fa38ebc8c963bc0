import { getLlama, type Llama, LlamaLogLevel, type Token } from "node-llama-cpp";

/**
 * Logprobs by stock llama.cpp: its own context computes them for a GGUF, with a LoRA adapter as `--lora` applies it.
 */
export class StockLlama {
  private constructor(private readonly llama: Llama) {}

  static async open(): Promise<StockLlama> {
    return new StockLlama(await getLlama({ gpu: false, build: "never", logLevel: LlamaLogLevel.error, maxThreads: 1 }));
  }

  /** Logprobs of each token given the ones before it; the first is 0. The KV cache is F16, about 1e-3 from F32's. */
  async score(model: string, tokenIds: readonly number[], lora?: string): Promise<number[]> {
    const stock = await this.llama.loadModel({ modelPath: model });
    const adapters = lora ? { adapters: [{ filePath: lora, scale: 1 }] } : undefined;
    const context = await stock.createContext({ contextSize: 256, threads: 1, lora: adapters });
    const results = await context
      .getSequence()
      .controlledEvaluate(tokenIds.map((token) => [token as Token, { generateNext: { logits: true } }]));
    const logprobs = tokenIds.map((token, t) =>
      t === 0 ? 0 : readLogprob(results[t - 1]!.next.logits!, token as Token),
    );
    await context.dispose();
    await stock.dispose();
    return logprobs;
  }

  dispose(): Promise<void> {
    return this.llama.dispose();
  }
}

function readLogprob(logits: ReadonlyMap<Token, number>, token: Token): number {
  const values = [...logits.values()];
  const most = values.reduce((a, b) => Math.max(a, b));
  return logits.get(token)! - most - Math.log(values.reduce((sum, value) => sum + Math.exp(value - most), 0));
}
