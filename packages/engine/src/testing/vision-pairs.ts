import type { TinyModelOptions } from "./make-tiny-model.js";
import type { TinyProjectorOptions } from "./tiny-projector.js";

/** A tiny model and a tiny projector of one published family, and a prompt with a picture. */
export interface VisionPair {
  name: string;
  model: TinyModelOptions;
  projector: TinyProjectorOptions;
  /** Width and height of the picture that `drawPicture` draws, in pixels. */
  width: number;
  height: number;
}

/**
 * Tokens around and between images' vectors in the vocabularies of published models; for tiles, those of a 2 x 2 grid.
 */
export const imageTokens: readonly string[] = [
  ...["<|vision_start|>", "<|vision_end|>", "<|image_pad|>"],
  ...["<image>", "</image>", "<slice>", "</slice>"],
  ...["<img>", "</img>", "<IMG_CONTEXT>"],
  ...["[IMG]", "[IMG_BREAK]", "[IMG_END]"],
  ...["<fake_token_around_image>", "<global-img>", "<end_of_utterance>"],
  ...["<row_1_col_1>", "<row_1_col_2>", "<row_2_col_1>", "<row_2_col_2>"],
];

/** Texts before and after the image, tokenized separately. */
export const pairPrompt = ["<|im_start|>user\nLook: ", " What?<|im_end|>\n<|im_start|>assistant\n"] as const;

const llama = { architecture: "llama" } as const;
const qwen2 = { architecture: "qwen2" } as const;
const qwen3 = { architecture: "qwen3" } as const;
/** MiniCPM-V's resampler has heads of 128, so its vectors have at least that length. */
const wide = { embedding: 128, heads: 8 } as const;
const landscape = { width: 60, height: 40 };

const pairs: VisionPair[] = [
  { name: "LLaVA 1.5", model: llama, projector: { type: "mlp", classToken: true }, ...landscape },
  {
    name: "LLaVA 1.6",
    model: llama,
    projector: { type: "mlp", classToken: true, tileSizes: [32, 64, 64, 32, 64, 64] },
    ...landscape,
  },
  { name: "SmolVLM", model: llama, projector: { type: "idefics3" }, ...landscape },
  { name: "InternVL 2.5", model: qwen2, projector: { type: "internvl", projection: 64 }, ...landscape },
  { name: "InternVL 3.5", model: qwen3, projector: { type: "internvl" }, ...landscape },
  {
    name: "MiniCPM-V 2.5",
    model: { ...llama, ...wide },
    projector: { type: "resampler", minicpmVersion: 2 },
    ...landscape,
  },
  {
    name: "MiniCPM-V 2.6",
    model: { ...qwen2, ...wide },
    projector: { type: "resampler", minicpmVersion: 3 },
    ...landscape,
  },
  {
    name: "MiniCPM-V 4.5",
    model: { ...qwen3, ...wide, seed: 4 },
    projector: { type: "resampler", minicpmVersion: 6 },
    ...landscape,
  },
  { name: "Pixtral", model: llama, projector: { type: "pixtral" }, ...landscape },
  { name: "Mistral Small 3.1", model: llama, projector: { type: "pixtral", patchMerger: true, seed: 2 }, ...landscape },
  { name: "Qwen2-VL", model: { architecture: "qwen2vl" }, projector: { type: "qwen2vl_merger" }, ...landscape },
  // Larger than one window of attention.
  {
    name: "Qwen2.5-VL",
    model: { architecture: "qwen2vl" },
    projector: { type: "qwen2.5vl_merger" },
    width: 128,
    height: 48,
  },
  { name: "Qwen3-VL", model: { architecture: "qwen3vl" }, projector: { type: "qwen3vl_merger" }, ...landscape },
  {
    name: "Qwen3.5",
    model: { architecture: "qwen35" },
    projector: { type: "qwen3vl_merger", deepLayers: 0 },
    ...landscape,
  },
];

/**
 * One of each family, and of each architecture that it is used with. Untied, because a tied model would repeat its
 * input.
 */
export const visionPairs: readonly VisionPair[] = pairs.map((pair) => ({
  ...pair,
  model: { controlTokens: imageTokens, merges: ["Ċ Ċ"], tied: false, ...pair.model },
}));

/** A BMP of this size: waves of colours, with an edge across. */
export function drawPicture(width: number, height: number): Uint8Array {
  const rowBytes = Math.ceil((3 * width) / 4) * 4;
  const file = Buffer.alloc(54 + rowBytes * height);
  file.write("BM");
  file.writeUInt32LE(file.length, 2);
  file.writeUInt32LE(54, 10);
  file.writeUInt32LE(40, 14);
  file.writeInt32LE(width, 18);
  file.writeInt32LE(height, 22);
  file.writeUInt16LE(1, 26);
  file.writeUInt16LE(24, 28);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      // Only whole numbers, so that every machine draws the same picture.
      const edge = 2 * x > 3 * y ? 90 : 0;
      const blue = ((7 * x + 3 * y) % 128) + edge;
      const green = ((x * y) % 160) + edge;
      const red = (5 * ((x >> 3) + (y >> 2)) * 11) % 256;
      // Rows are stored from the bottom up.
      file.set([blue, green, red], 54 + rowBytes * (height - 1 - y) + 3 * x);
    }
  }
  return Uint8Array.from(file);
}
