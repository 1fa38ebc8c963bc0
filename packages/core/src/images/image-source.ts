/** What dumps and checkpoints keep of an image; its file lies beside them, by hash. */
export interface ImageRecord {
  /** SHA-256 of the file's bytes, in hex. Two images are the same where this is. */
  hash: string;
  /** In pixels. */
  width: number;
  height: number;
  mimeType: ImageMimeType;
}

/** An image whose file is in memory. `loadImage` makes it. */
export interface LoadedImage extends ImageRecord {
  /** The file, as it came: PNG, JPEG, BMP or GIF. */
  bytes: Uint8Array;
}

/** Files that can be decoded. Of a GIF its first picture counts. */
export type ImageMimeType = "image/png" | "image/jpeg" | "image/bmp" | "image/gif";

/** Where an image comes from. Only programs and rows of data name paths and addresses, never a model. */
export type ImageSource =
  | LoadedImage
  | ImageRecord
  | { bytes: Uint8Array }
  | { path: string }
  /** Base64, or a data address. */
  | { data: string; mimeType?: string }
  | { url: string };

/** Whether an image's file is in memory. */
export function isLoaded(image: ImageSource): image is LoadedImage {
  return "hash" in image && "bytes" in image;
}
