import { createHash } from "node:crypto";
import { imageSize } from "image-size";
import { DataError } from "../errors/data-error.js";
import { type ImageMimeType, type ImageRecord, type ImageSource, isLoaded, type LoadedImage } from "./image-source.js";
import { type ReadSourceOptions, readHead, readSource } from "./read-source.js";

export interface ImageLimits {
  /** Of a file. Default 20 MiB. */
  maxBytes?: number;
  /** Width times height. Default 16,777,216 (4096 x 4096). */
  maxPixels?: number;
}

export interface LoadImageOptions extends ImageLimits, ReadSourceOptions {}

const defaultMaxPixels = 4096 * 4096;
const mimeTypes: Record<string, ImageMimeType> = {
  png: "image/png",
  jpg: "image/jpeg",
  bmp: "image/bmp",
  gif: "image/gif",
};

/** A file in memory. Copies of data share it, as it is no plain object, and JSON has its record alone. */
class ImageFile implements LoadedImage {
  constructor(
    readonly bytes: Uint8Array,
    readonly hash: string,
    readonly width: number,
    readonly height: number,
    readonly mimeType: ImageMimeType,
  ) {}

  toJSON(): ImageRecord {
    return toImageRecord(this);
  }
}

/** An image without its file. */
export function toImageRecord({ hash, width, height, mimeType }: ImageRecord): ImageRecord {
  return { hash, width, height, mimeType };
}

/**
 * Brings an image's file into memory and reads its size from its header, as it is shown: a JPEG's camera may have been turned.
 * Its pixels are decoded later.
 * @throws DataError "data/bad-image" for what is no image that can be decoded, or beyond the limits; "data/image-refused" for a
 * path or an address that these options do not allow.
 */
export async function loadImage(source: ImageSource, options: LoadImageOptions = {}): Promise<LoadedImage> {
  if (isLoaded(source)) return source;
  const bytes = await readSource(source, options);
  const { width, height, mimeType } = readHeader(bytes, options);
  return new ImageFile(bytes, createHash("sha256").update(bytes).digest("hex"), width, height, mimeType);
}

/** An image's size in pixels; of a path no more than its header is read. @throws DataError as `loadImage` does. */
export async function measureImage(
  source: ImageSource,
  options: LoadImageOptions = {},
): Promise<{ width: number; height: number }> {
  if ("hash" in source) return { width: source.width, height: source.height };
  if ("path" in source && options.folder !== undefined) {
    try {
      return readHeader(await readHead(source.path, options.folder), options);
    } catch {
      // A header that is longer, or the error that reading all of it gives.
    }
  }
  return readHeader(await readSource(source, options), options);
}

type Header = Pick<LoadedImage, "width" | "height" | "mimeType">;

/** What a file's first bytes say of it. */
function readHeader(bytes: Uint8Array, { subject = "image", maxPixels = defaultMaxPixels }: LoadImageOptions): Header {
  const { width, height, mimeType } = parseHeader(bytes, subject);
  if (width * height <= maxPixels) return { width, height, mimeType };
  throw new DataError("has too many pixels", {
    code: "data/bad-image",
    subject,
    expected: `at most ${maxPixels}`,
    received: `${width} x ${height}`,
    remedy: "scale it down, or raise the limit",
  });
}

function parseHeader(bytes: Uint8Array, subject: string): Header {
  const refuse = (received: string): never => {
    throw new DataError("is not an image that can be read", {
      code: "data/bad-image",
      subject,
      expected: "a PNG, JPEG, BMP or GIF file",
      received,
    });
  };
  let header: ReturnType<typeof imageSize>;
  try {
    header = imageSize(bytes);
  } catch (error) {
    return refuse(`${bytes.length} bytes: ${(error as Error).message}`);
  }
  const mimeType = mimeTypes[header.type ?? ""];
  if (!mimeType) return refuse(`a file of type ${header.type}`);
  if (!(header.width >= 1 && header.height >= 1)) return refuse(`${header.width} x ${header.height} pixels`);
  const { width, height } = header;
  return isOnItsSide(header) ? { width: height, height: width, mimeType } : { width, height, mimeType };
}

/** How a camera was held, as EXIF counts: 1 is upright, 5 to 8 lie on their side. */
function toOrientation({ orientation = 1 }: { orientation?: number }): number {
  return orientation >= 1 && orientation <= 8 ? orientation : 1;
}

function isOnItsSide(header: { orientation?: number }): boolean {
  return toOrientation(header) >= 5;
}

/** How the pixels of an image's file must be turned before they are shown, as EXIF counts: 1 to 8; 1: not at all. */
export function readOrientation(bytes: Uint8Array): number {
  try {
    return toOrientation(imageSize(bytes));
  } catch {
    return 1;
  }
}
