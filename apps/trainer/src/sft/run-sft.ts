import { constants, existsSync, statSync } from "node:fs";
import { access, mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { crossEntropyLoss } from "@cria/algorithms";
import { ConfigError, type LossFunction } from "@cria/core";
import { loadModel } from "@cria/engine";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { resolvePath } from "../config/load-config.js";
import type { SftConfig } from "../config/sft-config.js";
import { listTargets } from "../config/target-modules.js";
import { formatCount, Progress } from "../terminal/progress.js";
import { BucketedBatches } from "./bucketed-batches.js";
import { readExamples, type SftExample } from "./read-examples.js";

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
      ? { rank: modelConfig.lora_rank, alpha: modelConfig.lora_alpha, targets: listTargets(modelConfig.target_modules) }
      : null;
  const output = resolvePath(folder, trainer.output_path);
  await checkWritable(output);
  const model = await loadModel({
    path: resolvePath(folder, modelConfig.path),
    trainable: lora ? "lora" : "full",
    lora,
    contextSize: 64,
    maxSequences: 2,
    seed: trainer.seed,
    device: trainer.device,
    threads: trainer.threads ?? undefined,
  });
  try {
    const tokenizing = new Progress({ label: "tokenize", total: 1, silent: options.silent });
    const { examples, dropped, unsplit } = await readExamples(
      data.train_files.map((file) => resolvePath(folder, file)),
      DeltaTokenizer.forModel(model, { allowControlTokens: data.allow_control_tokens }),
      {
        messagesKey: data.messages_key,
        toolsKey: data.tools_key,
        maxLength: data.max_length,
        onProgress: (done, total) => {
          options.signal?.throwIfAborted();
          tokenizing.update(done, "", total);
        },
      },
    );
    const notes = [
      dropped > 0 ? `${dropped} longer than data.max_length left out` : "",
      unsplit > 0 ? `${unsplit} with control tokens that users or tools spelled` : "",
    ];
    tokenizing.finish(notes.filter((note) => note !== "").join("; "));
    const batches = new BucketedBatches(examples, data.train_batch_size, trainer.seed);
    // Batches hold dialogs of like length. Were each divided by its own tokens, those of short dialogs would weigh more,
    // and the model would prefer what is said in them.
    const tokensPerBatch = data.train_batch_size * averageLossTokens(examples);
    const loss: LossFunction = (inputs) =>
      crossEntropyLoss({ ...inputs, totals: { ...inputs.totals, tokens: tokensPerBatch } });
    const progress = new Progress({ label: "sft", total: trainer.total_training_steps, silent: options.silent });
    const started = performance.now();
    let average = Number.NaN;
    let tokens = 0;
    for (let step = 1; step <= trainer.total_training_steps; step++) {
      const batch = batches.next();
      const result = await model.train(
        batch,
        loss,
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
    await (lora ? model.saveAdapter(output) : model.saveModel(output));
    return { steps: trainer.total_training_steps, loss: average, seconds, tokensPerSecond: tokens / seconds, output };
  } finally {
    await model.dispose();
  }
}

function averageLossTokens(examples: readonly SftExample[]): number {
  let tokens = 0;
  for (const { lossMask } of examples) for (const bit of lossMask) tokens += bit;
  return tokens / examples.length;
}

/** Linear warm-up, then a cosine down to `floor`. */
export function scheduleRate(step: number, total: number, warmup: number, floor: number): number {
  const warm = Math.min(1, step / Math.max(1, warmup));
  return warm * (floor + (1 - floor) * 0.5 * (1 + Math.cos((Math.PI * (step - 1)) / total)));
}

/** Found out before the training, not after it. @throws ConfigError */
async function checkWritable(file: string): Promise<void> {
  try {
    await mkdir(dirname(file), { recursive: true });
    await access(dirname(file), constants.W_OK);
    if (existsSync(file) && !statSync(file).isFile()) throw new Error("is not a file");
  } catch (cause) {
    throw new ConfigError("cannot be written", {
      code: "config/output-not-writable",
      subject: `trainer.output_path ${file}`,
      expected: "a file name in a writable folder",
      received: (cause as Error).message,
      cause,
    });
  }
}
