import type { ImageLimits } from "@cria/core";
import type { TrainConfig } from "@cria/trainer";

/** Limits on the images of a training, from any source. */
export const readImageLimits = ({ data }: Pick<TrainConfig, "data">): Required<ImageLimits> => ({
  maxBytes: data.image_max_bytes,
  maxPixels: data.image_max_pixels,
});
