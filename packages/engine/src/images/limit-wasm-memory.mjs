const memorySection = 5;
const headerBytes = 8;

/**
 * A WebAssembly module with another maximum of its memory: when the module asks for more, it gets none. The sandbox of
 * `@cria/tools`, which this package may not import, limits its interpreters so too.
 * @param {Uint8Array} wasm
 * @param {number} mostPages of 64 KiB
 */
export function limitWasmMemory(wasm, mostPages) {
  for (let at = headerBytes; at < wasm.length; ) {
    const length = readNumber(wasm, at + 1);
    const next = length.end + length.value;
    if (wasm[at] === memorySection) {
      // One memory: a count, flags, a minimum, and a maximum if the flags are 1.
      const least = readNumber(wasm, length.end + 2);
      const body = [1, 1, ...writeNumber(least.value), ...writeNumber(mostPages)];
      const section = [memorySection, ...writeNumber(body.length), ...body];
      return Buffer.concat([wasm.subarray(0, at), Uint8Array.from(section), wasm.subarray(next)]);
    }
    at = next;
  }
  throw new Error("the WebAssembly module has no memory");
}

/** Numbers are written in groups of seven bits, the lowest first (LEB128). */
function readNumber(bytes, from) {
  let value = 0;
  for (let at = from, shift = 0; ; at++, shift += 7) {
    value += (bytes[at] & 0x7f) * 2 ** shift;
    if (bytes[at] < 0x80) return { value, end: at + 1 };
  }
}

function writeNumber(value) {
  const bytes = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return [...bytes, rest];
    bytes.push((rest % 128) | 0x80);
  }
}
