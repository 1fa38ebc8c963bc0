import { z } from "zod";

const tokens = z.int().positive().nullable().default(null);

/** Keys of a model that sees images. */
export const visionKeys = {
  mmproj: z
    .string()
    .nullable()
    .default(null)
    .describe(
      "The projector with which the model sees images: a GGUF beside the model's, which llama.cpp calls mmproj, or its address on a hub. It stays as it is. null: the model reads text alone.",
    ),
  image_min_tokens: tokens.describe(
    "Tokens that a small image is scaled up to, where the projector takes images of any size; null: as its file says.",
  ),
  image_max_tokens: tokens.describe("Tokens that a large image is scaled down to; null: as its file says."),
};

/** Keys of rows that have images. */
export const imageKeys = {
  image_key: z
    .string()
    .default("images")
    .describe(
      "Column of images, which stand in the messages where their texts say <image>: { bytes }, { path } from the file's folder, a path, or { data, mimeType }.",
    ),
  fetch_images: z
    .boolean()
    .default(false)
    .describe("Images that rows and your own tools name by an address are fetched; false: they are refused."),
  image_max_bytes: z
    .int()
    .positive()
    .default(20 * 1024 * 1024)
    .describe("Most bytes of an image's file, in rows and in answers of tools."),
  image_max_pixels: z
    .int()
    .positive()
    .default(4096 * 4096)
    .describe("Most pixels of an image, width times height; a larger one is refused before it is decoded."),
};
