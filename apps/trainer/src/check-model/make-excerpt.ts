import { open } from "node:fs/promises";
import {
  type GgufEntry,
  type GgufHeader,
  type GgufTensorInfo,
  type LazyGgufTensor,
  readGguf,
  writeGguf,
} from "@cria/engine";
import { readTensorBytes } from "@cria/engine/internal";

const BLOCK = /^blk\.(\d+)\./;

/**
 * Writes a model of the first `blocks` blocks of another one, with its weights, embeddings and head: complete, but
 * small enough to check gradients tensor by tensor. Tokens take all of a block's experts: where they chose some, the loss
 * would jump with each other choice, and have no slope there.
 */
export async function writeExcerpt(path: string, output: string, blocks: number): Promise<void> {
  const header = await readGguf(path);
  const file = await open(path);
  try {
    const tensors = listKept(header, blocks).map((tensor): LazyGgufTensor => {
      const { name, type, shape } = tensor;
      return { name, type: type.name, shape, makeBytes: () => readTensorBytes(file, tensor) };
    });
    const prefix = `${readArchitecture(header)}.`;
    const key = `${prefix}block_count`;
    const total = Number(header.metadata.get(key)?.value);
    const entries = [...header.metadata].map(([name, entry]) => {
      const { value } = entry;
      // RoPE's four sections are of all blocks, however many there are.
      const isOfBlocks = name.startsWith(prefix) && !name.startsWith(`${prefix}rope.`);
      const isByBlock = isOfBlocks && typeof value === "object" && value.arrayLength === total;
      return [name, isByBlock ? cutArray(entry, total, blocks) : entry] as const;
    });
    const u32 = (value: number) => ({ type: "uint32", value }) as const;
    const experts = Number(header.metadata.get(`${prefix}expert_count`)?.value ?? 0);
    const metadata = {
      ...Object.fromEntries(entries),
      [key]: u32(blocks),
      ...(experts > 0 ? { [`${prefix}expert_used_count`]: u32(experts) } : {}),
    };
    await writeGguf(output, { metadata, tensors });
  } finally {
    await file.close();
  }
}

/** Parameters of such an excerpt. */
export function countExcerpt(header: GgufHeader, blocks: number): number {
  return listKept(header, blocks).reduce((sum, { shape }) => sum + shape.reduce((product, n) => product * n, 1), 0);
}

/** An array of numbers, with its first `kept` values: LFM2's number of KV heads of each block, for example. */
function cutArray(entry: GgufEntry, length: number, kept: number): GgufEntry {
  const { raw } = entry;
  // Key (length and bytes), type, type of the items, their number, the items.
  const start = 8 + Number(raw.readBigUInt64LE(0)) + 4 + 4 + 8;
  const size = (raw.length - start) / length;
  const count = Buffer.alloc(8);
  count.writeBigUInt64LE(BigInt(kept));
  const items = raw.subarray(start, start + kept * size);
  return { value: { arrayLength: kept }, raw: Buffer.concat([raw.subarray(0, start - 8), count, items]) };
}

const listKept = ({ tensors }: GgufHeader, blocks: number): GgufTensorInfo[] =>
  tensors.filter(({ name }) => Number(BLOCK.exec(name)?.[1] ?? 0) < blocks);

const readArchitecture = ({ metadata }: GgufHeader): string => String(metadata.get("general.architecture")?.value);
