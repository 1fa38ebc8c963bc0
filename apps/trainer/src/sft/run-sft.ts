import { crossEntropyLoss } from "@cria/algorithms";
import { type ChatMessage, DataError, type ToolSchema } from "@cria/core";
import { loadModel } from "@cria/engine";
import { hashSeed, readRecords, shuffleIndices } from "@cria/rollout";
import { resolvePath } from "../config/load-config.js";
import type { SftConfig } from "../config/sft-config.js";
import { makeDeltaTokenizer } from "../make-delta-tokenizer.js";
import { formatCount, Progress } from "../terminal/progress.js";

interface Example {
  tokenIds: Int32Array;
  lossMask: Uint8Array;
}

export interface SftResult {
  steps: number;
  loss: number;
  seconds: number;
  tokensPerSecond: number;
  output: string;
}

/** Supervised fine-tuning on conversations: the loss is on assistant tokens and their end-of-turn tokens. */
export async function runSft(
  config: SftConfig,
  folder: string,
  options: { silent?: boolean; signal?: AbortSignal } = {},
): Promise<SftResult> {
  const { model: modelConfig, data, optim, trainer } = config;
  const lora =
    modelConfig.lora_rank > 0
      ? { rank: modelConfig.lora_rank, alpha: modelConfig.lora_alpha, targets: modelConfig.target_modules }
      : null;
  const model = await loadModel({
    path: resolvePath(folder, modelConfig.path),
    trainable: lora ? "lora" : "full",
    lora,
    contextSize: 64,
    maxSequences: 2,
    seed: trainer.seed,
  });
  try {
    const files = data.train_files.map((file) => resolvePath(folder, file));
    const examples = await encodeExamples(files, data, makeDeltaTokenizer(model), options.silent);
    const batches = new BucketedBatches(examples, data.train_batch_size, trainer.seed);
    const progress = new Progress({ label: "sft", total: trainer.total_training_steps, silent: options.silent });
    const started = performance.now();
    let average = Number.NaN;
    let tokens = 0;
    for (let step = 1; step <= trainer.total_training_steps; step++) {
      const batch = batches.next();
      const result = await model.train(
        batch,
        crossEntropyLoss,
        {
          learningRate:
            optim.lr * scheduleRate(step, trainer.total_training_steps, optim.lr_warmup_steps, optim.min_lr_ratio),
          betas: optim.betas,
          weightDecay: optim.weight_decay,
          maxGradNorm: optim.clip_grad,
        },
        { signal: options.signal },
      );
      average = step === 1 ? result.loss : 0.98 * average + 0.02 * result.loss;
      for (const example of batch) tokens += example.tokenIds.length;
      const rate = tokens / ((performance.now() - started) / 1000);
      progress.update(step, `loss ${average.toFixed(4)} · ${formatCount(rate)} tok/s`);
    }
    progress.finish();
    const seconds = (performance.now() - started) / 1000;
    const output = resolvePath(folder, trainer.output_path);
    await (lora ? model.saveAdapter(output) : model.saveModel(output));
    return { steps: trainer.total_training_steps, loss: average, seconds, tokensPerSecond: tokens / seconds, output };
  } finally {
    await model.dispose();
  }
}

/** Linear warm-up, then a cosine down to `floor`. */
export function scheduleRate(step: number, total: number, warmup: number, floor: number): number {
  const warm = Math.min(1, step / Math.max(1, warmup));
  return warm * (floor + (1 - floor) * 0.5 * (1 + Math.cos((Math.PI * (step - 1)) / total)));
}

async function encodeExamples(
  files: readonly string[],
  data: SftConfig["data"],
  tokenizer: ReturnType<typeof makeDeltaTokenizer>,
  silent: boolean | undefined,
): Promise<Example[]> {
  const records = (await Promise.all(files.map((file) => readRecords(file)))).flat();
  const progress = new Progress({ label: "tokenize", total: records.length, silent });
  const examples: Example[] = [];
  for (const [i, { value, place }] of records.entries()) {
    const row = value as Record<string, unknown>;
    const messages = row?.[data.messages_key];
    if (!Array.isArray(messages) || messages.length === 0) {
      throw new DataError("has no conversation", {
        code: "data/bad-row",
        subject: `${place}, column "${data.messages_key}"`,
        expected: "an array of messages",
        received: JSON.stringify(messages) ?? "nothing",
      });
    }
    const { tokenIds, mask } = tokenizer.encodeMessagesWithMask(
      messages as ChatMessage[],
      (row[data.tools_key] as ToolSchema[] | undefined) ?? [],
    );
    if (tokenIds.length <= data.max_length) examples.push({ tokenIds, lossMask: mask });
    if (i % 100 === 99 || i + 1 === records.length) progress.update(i + 1);
    if (i % 200 === 199) await new Promise((resolve) => setImmediate(resolve));
  }
  if (examples.length > 0) return examples;
  throw new DataError("holds no conversation that fits", {
    code: "data/empty",
    subject: files.join(", "),
    expected: `conversations of at most ${data.max_length} tokens`,
  });
}

/** Batches of similar length: eight batches' worth of examples are sorted, cut, and handed out in random order. */
class BucketedBatches {
  private queue: Example[][] = [];
  private order = new Int32Array(0);
  private position = 0;
  private epoch = 0;
  private round = 0;

  constructor(
    private readonly examples: readonly Example[],
    private readonly batchSize: number,
    private readonly seed: number,
  ) {}

  next(): Example[] {
    if (this.queue.length === 0) this.fill();
    return this.queue.pop()!;
  }

  private fill(): void {
    const bucket: Example[] = [];
    while (bucket.length < this.batchSize * 8) {
      if (this.position >= this.order.length) {
        this.order = shuffleIndices(
          this.examples.length,
          hashSeed(this.seed, "sft", this.epoch++),
        ) as Int32Array<ArrayBuffer>;
        this.position = 0;
      }
      bucket.push(this.examples[this.order[this.position++]!]!);
    }
    bucket.sort((a, b) => a.tokenIds.length - b.tokenIds.length);
    const batches = Array.from({ length: 8 }, (_, i) => bucket.slice(i * this.batchSize, (i + 1) * this.batchSize));
    this.queue = [...shuffleIndices(8, hashSeed(this.seed, "bucket", this.round++))].map((i) => batches[i]!);
  }
}
