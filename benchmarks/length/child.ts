/** Does one thing with one long conversation in a process of its own, whose peak of memory is that of this thing. */
import { statSync } from "node:fs";
import { type LoadModelOptions, loadModel } from "@cria/engine";
import { makeBatch, policyGradient, toSequences } from "../train/batch.js";

export interface LengthRequest {
  do: "decode" | "score" | "train";
  path: string;
  /** Tokens of the conversation. */
  length: number;
  threads: number;
  kvType: NonNullable<LoadModelOptions["kvType"]>;
  /** Tokens to sample behind them, by "decode". */
  sampled: number;
  /** Whether "decode" also scores what it sampled. */
  compares: boolean;
}

export interface LengthAnswer {
  /** Duration of the prompt with "decode", else of the whole work. */
  seconds: number;
  /** Peak of the process less the weights' file, in bytes. */
  memory: number;
  /** Seconds of the sampled tokens. */
  decodeSeconds?: number;
  /** Greatest difference between the sampler's logprobs and those of scoring. */
  difference?: number;
}

const request = JSON.parse(process.argv[2]!) as LengthRequest;
const { path, length, threads, kvType, sampled } = request;
const decodes = request.do === "decode";
await using model = await loadModel({
  path,
  threads,
  kvType,
  device: "cpu",
  lora: { rank: 16, alpha: 32 },
  maxSequences: 1,
  drafting: false,
  contextSize: decodes ? length + sampled : 64,
});
const answer = await act();
const memory = process.resourceUsage().maxRSS * 1024 - statSync(path).size;
console.log(JSON.stringify({ memory, ...answer } satisfies LengthAnswer));

async function act(): Promise<Omit<LengthAnswer, "memory"> & { memory?: number }> {
  const batch = makeBatch(1, length, model.info.vocabSize, false);
  if (request.do === "train") {
    const sequences = toSequences(batch);
    const { seconds } = await timed(() =>
      model.train(sequences, policyGradient, { learningRate: 1e-4, maxGradNorm: 1 }),
    );
    return { seconds };
  }
  const prompt = batch.tokens[0]!.slice(0, length);
  if (request.do === "score") return { seconds: (await timed(() => model.score([{ tokenIds: prompt }]))).seconds };

  const sequence = model.createSequence();
  const { seconds } = await timed(() => sequence.prefill(prompt.slice(0, -1)));
  const { seconds: decodeSeconds, result } = await timed(() =>
    sequence.generate(prompt.slice(-1), { maxTokens: sampled, seed: 1, stopTokens: [] }),
  );
  if (!request.compares) return { seconds, decodeSeconds };
  // Scoring comes later and must not count.
  const memory = process.resourceUsage().maxRSS * 1024 - statSync(path).size;
  const [scored] = await model.score([{ tokenIds: [...prompt, ...result.tokenIds] }]);
  const difference = Math.max(
    ...Array.from(result.logprobs, (logprob, i) => Math.abs(logprob - scored!.logprobs[length + i]!)),
  );
  return { seconds, decodeSeconds, memory, difference };
}

async function timed<T>(work: () => Promise<T>): Promise<{ seconds: number; result: T }> {
  const started = performance.now();
  const result = await work();
  return { seconds: (performance.now() - started) / 1000, result };
}
