import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type ChatMessage, type ImageEncoder, type PolicyEngine, writeFileAtomically } from "@cria/core";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import type { BaseTool } from "@cria/tools";
import type { ImageAccess } from "../images/load-content.js";
import { measureMessages, withoutImages } from "../images/measure-messages.js";
import { isBadImage } from "../is-fatal.js";
import type { DatasetRow } from "./dataset-row.js";
import { haveImages } from "./place-images.js";
import { listToolSchemas } from "./select-tools.js";

export interface MeasureOptions {
  engine: Pick<PolicyEngine, "info" | "chatTemplate" | "tokenize" | "detokenize" | "images">;
  tokenizer: Pick<DeltaTokenizer, "countPromptTokens">;
  tools: ReadonlyMap<string, BaseTool>;
  /** `data.apply_chat_template_kwargs`. */
  templateKwargs?: Readonly<Record<string, unknown>>;
  /** `data.allow_control_tokens`. */
  allowControlTokens?: boolean;
  /** Access to the rows' images. */
  images?: ImageAccess;
  /** Folder of the cache; null: none. */
  cacheFolder: string | null;
  onProgress?: (done: number, total: number) => unknown;
  signal?: AbortSignal;
}

/**
 * Number of tokens of each row's prompt, tools included, as a rollout renders it. Results are cached in a file named
 * after the rows' prompts and tools, the tokenizer and the template, so that any change measures again. A damaged or
 * unwritable cache costs only time. Images count by the size in their headers; an unreadable image counts 0, because
 * it fails its conversations anyway.
 */
export async function measurePrompts(given: readonly DatasetRow[], options: MeasureOptions): Promise<Int32Array> {
  const rows = await measureImages(given, options);
  const file = options.cacheFolder === null ? null : join(options.cacheFolder, `${makeKey(rows, options)}.json`);
  const known = file === null ? null : await readLengths(file, rows.length);
  if (known) return known;
  const lengths = new Int32Array(rows.length);
  for (const [i, row] of rows.entries()) {
    lengths[i] = countTokens(row, options);
    if (i % 64 !== 63 && i + 1 < rows.length) continue;
    options.onProgress?.(i + 1, rows.length);
    await new Promise((resolve) => setImmediate(resolve));
    options.signal?.throwIfAborted();
  }
  if (file !== null) await writeFileAtomically(file, JSON.stringify([...lengths])).catch(() => undefined);
  return lengths;
}

/** Replaces the rows' images by their sizes. */
async function measureImages(
  rows: readonly DatasetRow[],
  { images, signal }: MeasureOptions,
): Promise<readonly DatasetRow[]> {
  if (!rows.some(({ prompt }) => haveImages(prompt))) return rows;
  const measured: DatasetRow[] = [];
  for (const row of rows) {
    signal?.throwIfAborted();
    measured.push({ ...row, prompt: await measureMessages(row.prompt, { ...images, folder: row.folder }) });
  }
  return measured;
}

function countTokens(row: DatasetRow, { tokenizer, tools }: MeasureOptions): number {
  const count = (prompt: readonly ChatMessage[]) => tokenizer.countPromptTokens(prompt, listToolSchemas(tools, row));
  try {
    return count(row.prompt);
  } catch (error) {
    // The image is readable but cannot be encoded, for example too large for the projector.
    if (!isBadImage(error)) throw error;
    return count(withoutImages(row.prompt));
  }
}

async function readLengths(file: string, rows: number): Promise<Int32Array | null> {
  try {
    const lengths: unknown = JSON.parse(await readFile(file, "utf8"));
    const isWhole = Array.isArray(lengths) && lengths.length === rows && lengths.every(Number.isInteger);
    return isWhole ? Int32Array.from(lengths) : null;
  } catch {
    // Missing or damaged: measured again and replaced.
    return null;
  }
}

function makeKey(rows: readonly DatasetRow[], options: MeasureOptions): string {
  const hash = createHash("sha256");
  const add = (value: unknown) => hash.update(`${JSON.stringify(value)}\n`);
  add("prompt lengths, version 3");
  add(describeTokenizer(options.engine));
  add([options.templateKwargs ?? {}, options.allowControlTokens ?? false]);
  for (const row of rows) add([row.prompt, listToolSchemas(options.tools, row)]);
  return hash.digest("hex").slice(0, 32);
}

// Words, scripts, digits, spaces and symbols, so that two tokenizers with the same vocabulary size differ here.
const probe =
  "The quick brown fox's 3,141.59 — naïve café: ßÆ Ωμέγα, Привет мир! 你好世界 こんにちは 안녕하세요 مرحبا שלום नमस्ते 🦙👩🏽‍💻\t\n\n" +
  '  def f(x): return x**2  # {"name": "calc", "arguments": {"a": -1e-9}} <tool_call></s><|im_end|> https://a.b/c?d=e&f=%20';

/** Identifies a tokenizer by its template, special tokens, a probe text, and a sample of the vocabulary. */
function describeTokenizer(engine: MeasureOptions["engine"]): unknown {
  const { vocabSize, bosToken, eosToken, endOfGenerationTokens, addBos } = engine.info;
  const step = Math.max(1, Math.floor(vocabSize / 1024));
  const sample = Array.from({ length: Math.ceil(vocabSize / step) }, (_, i) => engine.detokenize([i * step]));
  return {
    template: engine.chatTemplate,
    special: { vocabSize, bosToken, eosToken, endOfGenerationTokens, addBos },
    probe: [...engine.tokenize(probe)],
    sample,
    ...(engine.images ? { images: describeEncoder(engine.images) } : {}),
  };
}

/** Identifies an image encoder by its projector and by the token counts of a few sizes, which depend on its limits. */
function describeEncoder(images: ImageEncoder): unknown {
  const counts = [16, 100, 300, 700, 1500, 4000].map((side) => {
    try {
      return images.countTokens({ width: side, height: Math.ceil(side / 2) });
    } catch {
      return null;
    }
  });
  return [images.info.hash, counts];
}
