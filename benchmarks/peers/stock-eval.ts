import { spawn } from "node:child_process";
import { join } from "node:path";
import { getRuntimeInfo } from "@cria/engine";
import { getProgram } from "../llama-cpp.js";
import { LineProcess } from "./line-process.js";

export interface StockEvalOptions {
  path: string;
  threads: number;
  contextSize: number;
  /**
   * Type of keys and values. "f16" is llama.cpp's default; "f32" goes without flash attention, which would round them.
   */
  kvType: "f16" | "f32";
  /** A LoRA adapter's GGUF, at scale 1. */
  adapter?: string;
}

/** Stock llama.cpp over the same libraries as ours, in a separate process, which only decodes by ggml's products. */
export class StockEval {
  private constructor(private readonly process: LineProcess) {}

  static async start(options: StockEvalOptions, log: (text: string) => void): Promise<StockEval> {
    const { path, threads, contextSize, kvType, adapter } = options;
    const program = await getProgram(
      { name: "stock-eval", sources: [join(import.meta.dirname, "stock-eval-main.cc")] },
      log,
    );
    const args = [getRuntimeInfo().librariesFolder, path, threads, contextSize, kvType].map(String);
    const child = spawn(program, adapter ? [...args, adapter] : args, { stdio: ["pipe", "pipe", "inherit"] });
    return new StockEval(new LineProcess(child));
  }

  /** Natural logarithms, as long as `tokenIds`; 0 for the first. */
  async score(tokenIds: ArrayLike<number>): Promise<number[]> {
    const { logprobs } = await this.send<{ logprobs: number[] }>(`score ${Array.from(tokenIds).join(" ")}`);
    return [0, ...logprobs];
  }

  /** The likeliest tokens one after the other, without a stop; `margins`: the lead of each one's logit. */
  greedy(prompt: ArrayLike<number>, count: number): Promise<{ tokens: number[]; margins: number[] }> {
    return this.send(`greedy ${count} ${Array.from(prompt).join(" ")}`);
  }

  private async send<T>(line: string): Promise<T> {
    this.process.write(line);
    return this.process.read<T>("stock llama.cpp ended; its last words are above");
  }

  dispose(): Promise<void> {
    return this.process.dispose();
  }
}
