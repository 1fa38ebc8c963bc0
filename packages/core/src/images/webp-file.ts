import { readExifOrientation } from "./exif-orientation.js";

/** The stored picture of a WebP file: its size, and where it says its first frame stands. */
export interface WebpFile {
  /** Size in pixels as stored; an orientation of 5 to 8 exchanges them. */
  width: number;
  height: number;
  /** By EXIF's numbers: 1 to 8, 1 is upright. */
  orientation: number;
  /** The first frame of an animation. Absent: the file is one picture. */
  frame?: WebpFrame;
}

/** A frame of an animation. */
export interface WebpFrame {
  /** Place of its upper left corner in the picture, and its size, in pixels. */
  x: number;
  y: number;
  width: number;
  height: number;
  /** The frame as a file of its own. */
  file: Uint8Array;
}

/** Bits of the first byte of VP8X. */
const flags = { exif: 0x08, alpha: 0x10, animation: 0x02 };
const frameHeaderBytes = 16;

/** True for a RIFF file of the type WEBP. */
export function isWebp(bytes: Uint8Array): boolean {
  return bytes.length >= 12 && readName(bytes, 0) === "RIFF" && readName(bytes, 8) === "WEBP";
}

/**
 * Reads the header of a WebP file, and its first frame if it is an animation; decodes nothing.
 * The EXIF part stands behind the pixels, so a file that has one must be there as a whole.
 * @throws Error when the header is damaged, or something that it announces is missing.
 */
export function readWebpFile(bytes: Uint8Array): WebpFile {
  const view = toView(bytes);
  const end = Math.min(bytes.length, 8 + view.getUint32(4, true));
  const [first, ...rest] = readChunks(bytes, 12, end);
  if (!first) throw new Error("the WebP file has no parts");
  if (first.name !== "VP8X") return { ...readBitstreamSize(first), orientation: 1 };
  if (first.data.length < 10) throw new Error("the WebP header is too short");
  const header = toView(first.data);
  const [width, height] = [readUint24(header, 4) + 1, readUint24(header, 7) + 1];
  const announced = first.data[0]!;
  const orientation = announced & flags.exif ? readOrientation(rest, end - 8 < view.getUint32(4, true)) : 1;
  if (!(announced & flags.animation)) return { width, height, orientation };
  const frame = rest.find(({ name }) => name === "ANMF");
  // A file's head may end within the first frame; its size is known then, and nobody decodes it.
  if (!frame?.isWhole) return { width, height, orientation };
  return { width, height, orientation, frame: readFrame(frame.data, width, height) };
}

/** Some programs remove the EXIF part and go on announcing it. @throws Error when the file ends before it. */
function readOrientation(chunks: readonly Chunk[], isCut: boolean): number {
  const exif = chunks.find(({ name }) => name === "EXIF");
  if (exif?.isWhole) return readExifOrientation(exif.data);
  if (isCut) throw new Error("the WebP file ends before its EXIF part");
  return 1;
}

interface Chunk {
  name: string;
  data: Uint8Array;
  /** False if the file ends within it. */
  isWhole: boolean;
}

/** The chunks from a place on; the last one may be cut. RIFF fills odd lengths up to even ones. */
function readChunks(bytes: Uint8Array, from: number, end: number): Chunk[] {
  const view = toView(bytes);
  const chunks: Chunk[] = [];
  for (let at = from; at + 8 <= end; ) {
    const length = view.getUint32(at + 4, true);
    const data = bytes.subarray(at + 8, Math.min(at + 8 + length, end));
    chunks.push({ name: readName(bytes, at), data, isWhole: data.length === length });
    at += 8 + length + (length % 2);
  }
  return chunks;
}

/** The size that a lossy or lossless bitstream has in its first bytes. */
function readBitstreamSize({ name, data }: Chunk): { width: number; height: number } {
  const view = toView(data);
  if (name === "VP8 " && data.length >= 10 && view.getUint32(2, true) >>> 8 === 0x2a019d)
    return { width: view.getUint16(6, true) & 0x3fff, height: view.getUint16(8, true) & 0x3fff };
  if (name === "VP8L" && data.length >= 5 && data[0] === 0x2f) {
    const bits = view.getUint32(1, true);
    return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
  }
  throw new Error("the WebP file has no picture that can be read");
}

/** @throws Error for a frame that does not lie in the picture. */
function readFrame(data: Uint8Array, width: number, height: number): WebpFrame {
  if (data.length < frameHeaderBytes) throw new Error("the first frame of the WebP file is too short");
  const view = toView(data);
  const place = { x: 2 * readUint24(view, 0), y: 2 * readUint24(view, 3) };
  const size = { width: readUint24(view, 6) + 1, height: readUint24(view, 9) + 1 };
  if (place.x + size.width > width || place.y + size.height > height)
    throw new Error("the first frame of the WebP file lies outside of the picture");
  return { ...place, ...size, file: makeStill(size, data.subarray(frameHeaderBytes)) };
}

/** A file of one picture, with the chunks of a frame. */
function makeStill({ width, height }: { width: number; height: number }, chunks: Uint8Array): Uint8Array {
  const file = new Uint8Array(30 + chunks.length);
  const view = toView(file);
  file.set(Buffer.from("RIFF    WEBPVP8X"));
  view.setUint32(4, file.length - 8, true);
  view.setUint32(16, 10, true);
  file[20] = flags.alpha;
  // The fourth byte of each size is overwritten by what follows.
  view.setUint32(24, width - 1, true);
  view.setUint16(27, (height - 1) & 0xffff, true);
  file[29] = (height - 1) >>> 16;
  file.set(chunks, 30);
  return file;
}

function readName(bytes: Uint8Array, at: number): string {
  return String.fromCharCode(...bytes.subarray(at, at + 4));
}

function readUint24(view: DataView, at: number): number {
  return view.getUint16(at, true) | (view.getUint8(at + 2) << 16);
}

function toView({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}
