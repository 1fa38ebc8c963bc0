import { createHash } from "node:crypto";
import type { ImagePiece, LoadedImage } from "@cria/core";
import type { NativeProjector } from "../native-types.js";
import { makeNormals } from "./make-tiny-model.js";

export interface StubProjectorOptions {
  /** Floats of a vector: the embedding size of its model, times 1 + its deep layers. */
  vectorSize: number;
  /** Default: a mark (token 1), a vector for each 8 x 8 pixels, and a mark (token 2). */
  layout?: (width: number, height: number) => ImagePiece[];
  /** True if the layout arranges vectors in rows and columns. */
  hasGrid?: boolean;
  /** Scale of the vectors, relative to 1 for those of an embedding table. Default 1. */
  scale?: number;
}

/** A projector without a tower: an image's vectors are random numbers derived from its bytes. */
export class StubProjector implements NativeProjector {
  /** First bytes of the encoded files, in order. */
  readonly encoded: number[] = [];
  /** Encodings wait for this promise. */
  gate: Promise<void> = Promise.resolve();

  constructor(private readonly options: StubProjectorOptions) {}

  info() {
    return { type: "stub", vectorSize: this.options.vectorSize };
  }

  layout(width: number, height: number): ImagePiece[] {
    if (this.options.layout) return this.options.layout(width, height);
    const [columns, rows] = [Math.ceil(width / 8), Math.ceil(height / 8)];
    const grid = this.options.hasGrid ? { columns, rows } : { columns: 0, rows: 0 };
    return [{ token: 1 }, { vectors: columns * rows, ...grid }, { token: 2 }];
  }

  async encode(file: Uint8Array): Promise<{ vectors: Float32Array }> {
    await this.gate;
    this.encoded.push(file[0]!);
    if (file[0] === 0) throw Object.assign(new Error("cannot be decoded"), { code: "bad-image", subject: "image" });
    const [, width, height, seed] = file;
    const normal = makeNormals(1000 * file[0]! + seed!);
    const count = this.layout(width!, height!).reduce((sum, piece) => sum + ("token" in piece ? 0 : piece.vectors), 0);
    const { vectorSize, scale = 1 } = this.options;
    return { vectors: Float32Array.from({ length: count * vectorSize }, () => scale * normal()) };
  }

  async decode(): Promise<{ width: number; height: number; rgb: Uint8Array }> {
    return { width: 1, height: 1, rgb: new Uint8Array(3) };
  }

  async dispose(): Promise<void> {}
}

/** An image that the stub takes; `seed` 1 to 255. With seed 0 its file cannot be decoded. */
export function makeStubImage(seed: number, width = 32, height = 24): LoadedImage {
  const bytes = Uint8Array.of(seed, width, height, 7);
  const hash = createHash("sha256").update(bytes).digest("hex");
  return { bytes, hash, width, height, mimeType: "image/png" };
}
