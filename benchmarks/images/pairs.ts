import { writeGguf } from "@cria/engine";
import { makeTinyProjector } from "@cria/engine/testing";
import { describeTinyProjector, embeddedPolicyPath } from "@cria/models";
import { cached } from "../cache.js";
import { getModelFile } from "../models/index.js";

/** A model and the projector with which it sees. */
export interface Pair {
  title: string;
  /** Width of a picture, in pixels. */
  width: number;
  height: number;
  /** More than prompt and answer. */
  contextSize: number;
  /** Tries one thread too: two may wait for each other longer than they work. */
  small: boolean;
  /** Least ratio to the peer's tokens a second for a group, which sees its image once. */
  groupTarget: number;
  open(log: (text: string) => void): Promise<{ path: string; projector: string }>;
}

export const pairs: readonly Pair[] = [
  {
    title: "embedded policy, the examples' projector",
    width: 32,
    height: 32,
    contextSize: 256,
    small: true,
    groupTarget: 1,
    open: async () => ({
      path: embeddedPolicyPath,
      projector: await cached("models/cria-tiny.mmproj.gguf", (temporary) =>
        writeGguf(temporary, describeTinyProjector()),
      ),
    }),
  },
  // LLaVA's structure at CLIP's smaller size, squares of 224 pixels and 256 vectors, with half of its width and a third
  // of its layers.
  {
    title: "SmolLM2-135M Q8_0, LLaVA's projector of 8 layers",
    width: 224,
    height: 224,
    contextSize: 512,
    small: false,
    groupTarget: 2,
    open: async (log) => ({
      path: await getModelFile("smollm2-135m", "Q8_0", log),
      projector: await cached("models/llava-224-8-layers.mmproj.gguf", async (temporary) => {
        const tower = { imageSize: 224, patchSize: 14, embedding: 512, layers: 8, heads: 8, feedForward: 2048 };
        await makeTinyProjector(temporary, { type: "mlp", classToken: true, projection: 576, ...tower });
      }),
    }),
  },
];
