// Decodes one WebP picture, in a thread of its own: libwebp as WebAssembly, without a function of this program that it
// could call. The module and its memory end with the picture, so a damaged file spoils nothing after it.
// Gets { file, frame, width, height, mostBytes }; posts { picture } (a BMP, which the native decoder reads) or { error }.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { parentPort, workerData } from "node:worker_threads";
import { limitWasmMemory } from "./limit-wasm-memory.mjs";

const port = /** @type {import("node:worker_threads").MessagePort} */ (parentPort);
const bmpHeaderBytes = 122;
const pageBytes = 65536;

try {
  const picture = toBmp(workerData);
  port.postMessage({ picture }, [picture.buffer]);
} catch (error) {
  port.postMessage({ error: error instanceof Error ? error.message : String(error) });
}

function toBmp({ file, frame, width, height, mostBytes }) {
  const { memory, WebPDecodeRGBA, malloc } = startModule(mostBytes);
  const input = malloc(file.length);
  const size = malloc(8);
  if (input === 0 || size === 0) throw new Error("the WebP file does not fit into its memory");
  new Uint8Array(memory.buffer, input, file.length).set(file);
  const pixels = WebPDecodeRGBA(input, file.length, size, size + 4);
  if (pixels === 0) throw new Error("the WebP file is damaged, or takes too much memory");
  const [decodedWidth, decodedHeight] = new Uint32Array(memory.buffer, size, 2);
  if (decodedWidth !== frame.width || decodedHeight !== frame.height)
    throw new Error("the WebP picture has another size than its header says");
  const rowBytes = 4 * frame.width;
  const rgba = new Uint8Array(memory.buffer, pixels, rowBytes * frame.height);
  const bmp = startBmp(width, height);
  for (let y = 0; y < frame.height; y++) {
    const at = bmpHeaderBytes + 4 * ((frame.y + y) * width + frame.x);
    bmp.set(rgba.subarray(y * rowBytes, (y + 1) * rowBytes), at);
  }
  return bmp;
}

/** @returns {any} the module's exports */
function startModule(mostBytes) {
  const wasm = readFileSync(createRequire(import.meta.url).resolve("@cwasm/webp/webp.wasm"));
  const limited = limitWasmMemory(wasm, Math.ceil(mostBytes / pageBytes));
  const module = new WebAssembly.Module(/** @type {BufferSource} */ (limited));
  /** @type {WebAssembly.Imports} */
  const imports = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module)) {
    imports[from] ??= {};
    imports[from][name] = () => {
      throw new Error(`the WebP decoder called ${name}`);
    };
  }
  return new WebAssembly.Instance(module, imports).exports;
}

/** A BMP of red, green, blue and opacity (BITMAPV4HEADER), rows from the top, all of it transparent. */
function startBmp(width, height) {
  const bmp = new Uint8Array(bmpHeaderBytes + 4 * width * height);
  const view = new DataView(bmp.buffer);
  const write = (at, value) => view.setInt32(at, value, true);
  bmp.set([0x42, 0x4d]);
  write(2, bmp.length);
  write(10, bmpHeaderBytes);
  write(14, bmpHeaderBytes - 14);
  write(18, width);
  // A negative height: the top row comes first.
  write(22, -height);
  // One plane of 32 bits, whose masks say where each colour stands.
  write(26, 1 | (32 << 16));
  write(30, 3);
  for (const [i, mask] of [0xff, 0xff00, 0xff0000, 0xff000000].entries()) write(54 + 4 * i, mask);
  return bmp;
}
