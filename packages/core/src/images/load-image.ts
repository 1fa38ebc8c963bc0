import { createHash } from "node:crypto";
import { type ChecksOf, checkOptions, optionChecks } from "../check-options.js";
import { DataError } from "../errors/data-error.js";
import { type ImageMimeType, type ImageRecord, type ImageSource, isLoaded, type LoadedImage } from "./image-source.js";
import { type ReadSourceOptions, readHead, readSource } from "./read-source.js";
import { isWebp, readWebpFile } from "./webp-file.js";

export interface ImageLimits {
  /** Most bytes of a file. Default 20 MiB. */
  maxBytes?: number;
  /** Most pixels, width times height. Default 16,777,216 (4096 x 4096). */
  maxPixels?: number;
}

export interface LoadImageOptions extends ImageLimits, ReadSourceOptions {}

const { number, text } = optionChecks;

const imageChecks: ChecksOf<Required<LoadImageOptions>> = {
  maxBytes: number,
  maxPixels: number,
  subject: text,
  folder: text,
  fetch: optionChecks.function,
};

const defaultMaxPixels = 4096 * 4096;
const mimeTypes: Record<string, ImageMimeType> = {
  png: "image/png",
  jpg: "image/jpeg",
  webp: "image/webp",
  bmp: "image/bmp",
  gif: "image/gif",
};

/** A file in memory. It is not a plain object, so copies of data share it, and JSON contains only its record. */
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

/** The record of an image, without its file. */
export function toImageRecord({ hash, width, height, mimeType }: ImageRecord): ImageRecord {
  return { hash, width, height, mimeType };
}

/**
 * Loads an image's file into memory and reads its displayed size from its header: the camera may have been turned.
 * Pixels are decoded later.
 * @throws DataError "data/bad-image" for a file that cannot be decoded or exceeds the limits; "data/image-refused" for
 * a path or an address that these options do not allow; ConfigError for an unknown or wrong option.
 */
export async function loadImage(source: ImageSource, options: LoadImageOptions = {}): Promise<LoadedImage> {
  checkOptions("loadImage", options, imageChecks);
  if (isLoaded(source)) return source;
  const bytes = await readSource(source, options);
  const { width, height, mimeType } = await readHeader(bytes, options);
  return new ImageFile(bytes, createHash("sha256").update(bytes).digest("hex"), width, height, mimeType);
}

/** An image's size in pixels; of a path it reads only the header. @throws DataError as `loadImage` does. */
export async function measureImage(
  source: ImageSource,
  options: LoadImageOptions = {},
): Promise<{ width: number; height: number }> {
  if ("hash" in source) return { width: source.width, height: source.height };
  if ("path" in source && options.folder !== undefined) {
    try {
      return await readHeader(await readHead(source.path, options.folder), options);
    } catch {
      // The header is longer, or reading all of it gives the error.
    }
  }
  return readHeader(await readSource(source, options), options);
}

type Header = Pick<LoadedImage, "width" | "height" | "mimeType">;

/** Facts from a file's first bytes. */
async function readHeader(
  bytes: Uint8Array,
  { subject = "image", maxPixels = defaultMaxPixels }: LoadImageOptions,
): Promise<Header> {
  const { width, height, mimeType } = await parseHeader(bytes, subject);
  if (width * height <= maxPixels) return { width, height, mimeType };
  throw new DataError("has too many pixels", {
    code: "data/bad-image",
    subject,
    expected: `at most ${maxPixels}`,
    received: `${width} x ${height}`,
    remedy: "scale it down, or raise the limit",
  });
}

async function parseHeader(bytes: Uint8Array, subject: string): Promise<Header> {
  const refuse = (received: string): never => {
    throw new DataError("is not an image that can be read", {
      code: "data/bad-image",
      subject,
      expected: "a PNG, JPEG, WebP, BMP or GIF file",
      received,
      remedy: "convert the image to one of these formats",
    });
  };
  let header: StoredHeader;
  try {
    header = await readStoredHeader(bytes);
  } catch (error) {
    return refuse(`${bytes.length} bytes: ${(error as Error).message}`);
  }
  const mimeType = mimeTypes[header.type ?? ""];
  if (!mimeType) return refuse(`a file of type ${header.type}`);
  if (!(header.width >= 1 && header.height >= 1)) return refuse(`${header.width} x ${header.height} pixels`);
  const { width, height } = header;
  return isOnItsSide(header) ? { width: height, height: width, mimeType } : { width, height, mimeType };
}

/** A file's description of its pixels as they are stored. */
interface StoredHeader {
  width: number;
  height: number;
  type?: string;
  orientation?: number;
}

/** @throws Error when the header is damaged, or of no known format. */
async function readStoredHeader(bytes: Uint8Array): Promise<StoredHeader> {
  if (isWebp(bytes)) return { ...readWebpFile(bytes), type: "webp" };
  const { imageSize } = await import("image-size");
  return imageSize(bytes);
}

/** The camera's orientation, by EXIF's numbers: 1 is upright, 5 to 8 lie on their side. */
function toOrientation({ orientation = 1 }: { orientation?: number }): number {
  return orientation >= 1 && orientation <= 8 ? orientation : 1;
}

function isOnItsSide(header: { orientation?: number }): boolean {
  return toOrientation(header) >= 5;
}

/** The rotation that an image's pixels need before display, by EXIF's numbers: 1 to 8; 1: none. */
export async function readOrientation(bytes: Uint8Array): Promise<number> {
  try {
    return toOrientation(await readStoredHeader(bytes));
  } catch {
    return 1;
  }
}
