import type { ImageEncoder, ImageStats, Trajectory } from "@cria/core";
import type { StepMetrics } from "../step-metrics.js";

/** Measures the image work of the policy's engine during a step. */
export class ImageMeter {
  private readonly before: ImageStats | null;

  /** @param images the engine's image encoder; undefined: the engine sees no images, and there are no metrics. */
  constructor(private readonly images: ImageEncoder | undefined) {
    this.before = images?.stats() ?? null;
  }

  /** Metrics since the meter was created; `images/shown` counts the images of the given conversations. */
  measure(conversations: readonly Pick<Trajectory, "images">[]): StepMetrics {
    const { images, before } = this;
    if (!images || !before) return {};
    const now = images.stats();
    const shown = conversations.map((conversation) => conversation.images?.length ?? 0);
    return {
      "images/shown/mean": shown.reduce((sum, count) => sum + count, 0) / Math.max(1, shown.length),
      "images/shown/max": shown.reduce((most, count) => Math.max(most, count), 0),
      "images/encoded": now.encoded - before.encoded,
      "images/encoded_again": now.encodedAgain - before.encodedAgain,
      "images/reused": now.reused - before.reused,
      "images/encode_s": now.encodeSeconds - before.encodeSeconds,
      "images/held": now.held,
      "images/held_mb": now.heldBytes / 2 ** 20,
    };
  }
}
