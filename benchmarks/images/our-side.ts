import { type LoadedImage, loadImage } from "@cria/core";
import { type LlamaModel, loadModel } from "@cria/engine";
import type { Pair } from "./pairs.js";

export interface Shown {
  seconds: number;
  /** Positions of the prompt. */
  positions: number;
  /** Images that were encoded for it. */
  encoded: number;
}

/** Our side. A picture that was shown before is not encoded again, so each call gets another file. */
export class OurSide {
  private constructor(private readonly model: LlamaModel) {}

  /** @param samples most conversations at once. */
  static async load(
    { contextSize }: Pair,
    files: { path: string; projector: string },
    threads: number,
    samples: number,
  ): Promise<OurSide> {
    const { path, projector: mmproj } = files;
    // KV in F16, like the peer's; each side has its own attention.
    const options = { device: "cpu", kvType: "f16" } as const;
    return new OurSide(
      await loadModel({ path, mmproj, threads, contextSize, maxSequences: samples, drafting: false, ...options }),
    );
  }

  /** Seconds from the file to its vectors. */
  async encode(bytes: Uint8Array): Promise<number> {
    const started = performance.now();
    await this.model.images!.prepare(await loadImage({ bytes }));
    return (performance.now() - started) / 1000;
  }

  /** Shows the picture, then the text, to this many samples at once; each samples this many tokens. */
  async ask(
    bytes: Uint8Array,
    text: string,
    { tokens, samples = 1 }: { tokens: number; samples?: number },
  ): Promise<Shown> {
    const before = this.model.images!.stats().encoded;
    const started = performance.now();
    const image: LoadedImage = await loadImage({ bytes });
    const { tokenIds } = this.model.images!.place(image);
    const prompt = [...tokenIds, ...this.model.tokenize(text)];
    const sequences = Array.from({ length: samples }, () => this.model.createSequence());
    const results = await Promise.all(
      sequences.map((sequence, seed) =>
        sequence.generate(prompt, { maxTokens: tokens, temperature: samples > 1 ? 1 : 0, seed, stopTokens: [] }),
      ),
    );
    const seconds = (performance.now() - started) / 1000;
    for (const sequence of sequences) sequence.dispose();
    if (results.some((result) => result.tokenIds.length !== tokens)) throw new Error("ours sampled too little");
    return { seconds, positions: prompt.length, encoded: this.model.images!.stats().encoded - before };
  }

  dispose(): Promise<void> {
    return this.model.dispose();
  }
}
