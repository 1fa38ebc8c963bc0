import type { LoadedImage } from "@cria/core";

/** Images of packed values. They travel on their own, by the SHA-256 of their files: each once, whoever shows it. */
export interface ImageExchange {
  /** Sees to it that who receives the value can have the image. @throws TypeError for one whose file has another SHA-256; ClusterError. */
  put(image: LoadedImage): Promise<void>;
  /** An image that another machine named. @throws ClusterError when it is missing, damaged, or refused. */
  get(sha256: string): Promise<LoadedImage>;
}
