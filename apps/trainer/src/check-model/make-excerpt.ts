import { open } from "node:fs/promises";
import { type GgufHeader, type LazyGgufTensor, readGguf, writeGguf } from "@cria/engine";

const BLOCK = /^blk\.(\d+)\./;

/**
 * Writes a model of the first `blocks` blocks of another one: its own weights, embeddings and head, all that a whole model is
 * made of, and small enough for gradients to be checked tensor by tensor.
 */
export async function writeExcerpt(path: string, output: string, blocks: number): Promise<void> {
  const header = await readGguf(path);
  const kept = header.tensors.filter(({ name }) => Number(BLOCK.exec(name)?.[1] ?? 0) < blocks);
  const file = await open(path);
  try {
    const tensors = kept.map(
      ({ name, type, shape, offset, bytes }): LazyGgufTensor => ({
        name,
        type: type.name,
        shape,
        makeBytes: async () => {
          const data = Buffer.alloc(bytes);
          await file.read(data, 0, bytes, offset);
          return data;
        },
      }),
    );
    const key = `${readArchitecture(header)}.block_count`;
    const metadata = { ...Object.fromEntries(header.metadata), [key]: { type: "uint32", value: blocks } as const };
    await writeGguf(output, { metadata, tensors });
  } finally {
    await file.close();
  }
}

/** Parameters of such an excerpt. */
export function countExcerpt({ tensors }: GgufHeader, blocks: number): number {
  return tensors
    .filter(({ name }) => Number(BLOCK.exec(name)?.[1] ?? 0) < blocks)
    .reduce((sum, { shape }) => sum + shape.reduce((product, n) => product * n, 1), 0);
}

const readArchitecture = ({ metadata }: GgufHeader): string => String(metadata.get("general.architecture")?.value);
