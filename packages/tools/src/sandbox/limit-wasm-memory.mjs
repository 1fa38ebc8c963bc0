/** Pages of a WebAssembly memory, in bytes. */
export const PAGE = 65_536;

/**
 * A module whose own memory cannot grow beyond `maxPages`: its binary with another maximum in the memory section.
 * @param {Uint8Array} binary of a module that defines its memory itself
 * @param {number} maxPages of 64 KiB
 * @returns {Uint8Array}
 */
export function limitWasmMemory(binary, maxPages) {
  // Behind magic and version: sections of id, length and content.
  for (let at = 8; at < binary.length; ) {
    const [length, start] = readLeb(binary, at + 1);
    const MEMORY = 5;
    if (binary[at] !== MEMORY) {
      at = start + length;
      continue;
    }
    const [count, flagsAt] = readLeb(binary, start);
    if (count !== 1 || binary[flagsAt] > 1) throw new Error("expected one memory of 32 bits that is not shared");
    const [minPages] = readLeb(binary, flagsAt + 1);
    if (maxPages < minPages)
      throw new RangeError(`needs ${minPages * PAGE} bytes to start, may have ${maxPages * PAGE}`);
    const HAS_MAXIMUM = 1;
    const content = [1, HAS_MAXIMUM, ...writeLeb(minPages), ...writeLeb(maxPages)];
    const section = [MEMORY, ...writeLeb(content.length), ...content];
    return concatenate(binary.subarray(0, at), Uint8Array.from(section), binary.subarray(start + length));
  }
  throw new Error("defines no memory");
}

/** Reads an unsigned number in 7-bit groups, and the index of the next byte. */
function readLeb(bytes, at) {
  let value = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[at++];
    value += (byte & 127) * 2 ** shift;
    if (byte < 128) return [value, at];
  }
}

function writeLeb(value) {
  const bytes = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push((value & 127) | 128);
  return [...bytes, value];
}

function concatenate(...parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
