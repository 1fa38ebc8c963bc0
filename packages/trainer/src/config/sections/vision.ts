import { z } from "zod";
import { dataOptions } from "../options/data.js";
import { imageOptions } from "../options/environment.js";

const tokens = z.int().positive().nullable().default(null);

/** Keys of a model that takes images. */
export const visionKeys = {
  mmproj: z
    .string()
    .nullable()
    .default(null)
    .describe(
      "Projector that encodes images for the model: a GGUF (llama.cpp: mmproj), or its address on a hub. It is not trained. null: the model reads only text.",
    ),
  image_min_tokens: tokens.describe(
    "Tokens that a small image is scaled up to, if the projector takes images of any size; null: the value of its file.",
  ),
  image_max_tokens: tokens.describe("Tokens that a large image is scaled down to; null: the value of its file."),
};

const { shape: images } = imageOptions;

/** Keys of rows with images. */
export const imageKeys = {
  image_key: dataOptions.shape.imageKey,
  fetch_images: images.fetchImages,
  image_max_bytes: images.imageMaxBytes,
  image_max_pixels: images.imageMaxPixels,
};
