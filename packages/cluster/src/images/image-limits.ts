import type { ImageLimits } from "@cria/core";
import type { TrainConfig } from "@cria/trainer";

/** How large the images of a training may be, wherever they come from. */
export const readImageLimits = ({ data }: Pick<TrainConfig, "data">): Required<ImageLimits> => ({
  maxBytes: data.image_max_bytes,
  maxPixels: data.image_max_pixels,
});
