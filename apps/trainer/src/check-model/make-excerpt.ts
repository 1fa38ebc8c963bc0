import { open } from "node:fs/promises";
import { type GgufHeader, type GgufTensorInfo, type LazyGgufTensor, readGguf, writeGguf } from "@cria/engine";
import { readTensorBytes } from "@cria/engine/internal";

const BLOCK = /^blk\.(\d+)\./;

/**
 * Writes a model of the first `blocks` blocks of another one, with its weights, embeddings and head: complete, but
 * small enough to check gradients tensor by tensor.
 */
export async function writeExcerpt(path: string, output: string, blocks: number): Promise<void> {
  const header = await readGguf(path);
  const file = await open(path);
  try {
    const tensors = listKept(header, blocks).map((tensor): LazyGgufTensor => {
      const { name, type, shape } = tensor;
      return { name, type: type.name, shape, makeBytes: () => readTensorBytes(file, tensor) };
    });
    const key = `${readArchitecture(header)}.block_count`;
    const metadata = { ...Object.fromEntries(header.metadata), [key]: { type: "uint32", value: blocks } as const };
    await writeGguf(output, { metadata, tensors });
  } finally {
    await file.close();
  }
}

/** Parameters of such an excerpt. */
export function countExcerpt(header: GgufHeader, blocks: number): number {
  return listKept(header, blocks).reduce((sum, { shape }) => sum + shape.reduce((product, n) => product * n, 1), 0);
}

const listKept = ({ tensors }: GgufHeader, blocks: number): GgufTensorInfo[] =>
  tensors.filter(({ name }) => Number(BLOCK.exec(name)?.[1] ?? 0) < blocks);

const readArchitecture = ({ metadata }: GgufHeader): string => String(metadata.get("general.architecture")?.value);
