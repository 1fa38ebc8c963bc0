/** The record of an image in dumps and checkpoints; its file is stored next to them, by hash. */
export interface ImageRecord {
  /** SHA-256 of the file's bytes, in hex. Images with equal hashes are equal. */
  hash: string;
  /** In pixels. */
  width: number;
  height: number;
  mimeType: ImageMimeType;
}

/** An image whose file is in memory, created by `loadImage`. */
export interface LoadedImage extends ImageRecord {
  /** The unchanged file: PNG, JPEG, WebP, BMP or GIF. */
  bytes: Uint8Array;
}

/** Formats that can be decoded. Of an animation only the first picture is used. */
export type ImageMimeType = "image/png" | "image/jpeg" | "image/webp" | "image/bmp" | "image/gif";

/** Source of an image. Only programs and rows of data name paths and addresses, never a model. */
export type ImageSource =
  | LoadedImage
  | ImageRecord
  | { bytes: Uint8Array }
  | { path: string }
  /** Base64, or a data URL. */
  | { data: string; mimeType?: string }
  | { url: string };

/** True if the image's file is in memory. */
export function isLoaded(image: ImageSource): image is LoadedImage {
  return "hash" in image && "bytes" in image;
}
