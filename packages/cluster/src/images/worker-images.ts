import type { ImageLimits } from "@cria/core";
import type { Blobs } from "../bus/job-bus.js";
import { fetchImage, storeImage } from "./fetch-image.js";
import { ImageCache } from "./image-cache.js";
import type { ImageExchange } from "./image-exchange.js";

/** Bytes of files that stay while no job shows them. */
const KEPT_BYTES = 256 * 2 ** 20;

/** The images of a worker's jobs: each is fetched once, as long as there is room. */
export class WorkerImages {
  private readonly cache = new ImageCache();

  constructor(
    private readonly blobs: Pick<Blobs, "put" | "get">,
    private readonly limits: ImageLimits,
    private readonly keptBytes = KEPT_BYTES,
  ) {}

  /**
   * The images of one job. Images that came with the job are not sent back. All others are put into the bus each time,
   * even if an earlier job had them: the coordinator may have deleted them since.
   */
  ofJob(): ImageExchange {
    const came = new Set<string>();
    return {
      get: async (sha256) => {
        came.add(sha256);
        const image = await this.cache.get(sha256, () => fetchImage(this.blobs, sha256, this.limits));
        this.cache.trim(this.keptBytes);
        return image;
      },
      put: async (image) => {
        if (!came.has(image.hash)) await storeImage(this.blobs, image);
      },
    };
  }
}
