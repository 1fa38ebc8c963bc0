import { createHash } from "node:crypto";
import type { ImagePiece, LoadedImage } from "@cria/core";
import type { NativeProjector } from "../native-types.js";
import { makeNormals } from "./make-tiny-model.js";

export interface StubProjectorOptions {
  /** Floats of a vector: the embedding size of the model it is for, times 1 + its deep layers. */
  vectorSize: number;
  /** Default: a mark (token 1), a vector for each 8 x 8 pixels, and a mark (token 2). */
  layout?: (width: number, height: number) => ImagePiece[];
  /** Whether that says that the vectors lie in rows and columns. */
  hasGrid?: boolean;
  /** Against 1 for those of an embedding table. Default 1. */
  scale?: number;
}

/** A projector without a tower: an image's vectors are random numbers that follow from its bytes. */
export class StubProjector implements NativeProjector {
  /** Files that were encoded, in their order, by their first byte. */
  readonly encoded: number[] = [];
  /** Encodings wait for it. */
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

/** An image that the stub takes; `seed` 1 to 255. Its file cannot be decoded where it is 0. */
export function makeStubImage(seed: number, width = 32, height = 24): LoadedImage {
  const bytes = Uint8Array.of(seed, width, height, 7);
  const hash = createHash("sha256").update(bytes).digest("hex");
  return { bytes, hash, width, height, mimeType: "image/png" };
}
