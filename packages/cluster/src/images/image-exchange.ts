import type { LoadedImage } from "@cria/core";

/**
 * Images of packed values. They travel separately, by the SHA-256 of their files: each once, even if several values
 * show it.
 */
export interface ImageExchange {
  /**
   * Makes the image available to the receiver of the value.
   * @throws TypeError for one whose file has another SHA-256; ClusterError.
   */
  put(image: LoadedImage): Promise<void>;
  /** An image that another machine named. @throws ClusterError when it is missing, damaged, or refused. */
  get(sha256: string): Promise<LoadedImage>;
}
