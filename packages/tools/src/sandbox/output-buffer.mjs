/**
 * Output of a program, in memory that both threads of its process share: the watchdog can still read it when the
 * program's thread hangs. Layout: int32 bytes written, int32 1 when a text did not fit, then the bytes.
 */
const HEADER = 8;

/** @param {number} capacity bytes */
export function makeOutputBuffer(capacity) {
  return new SharedArrayBuffer(HEADER + capacity);
}

/** @param {SharedArrayBuffer} buffer */
export function clearOutput(buffer) {
  new Int32Array(buffer, 0, 2).fill(0);
}

/**
 * Appends as much as fits; it never splits a character, and appends nothing after a cut.
 * @param {SharedArrayBuffer} buffer
 * @param {string} text
 * @returns {number} bytes that are left; -1 when a text did not fit
 */
export function writeOutput(buffer, text) {
  const state = new Int32Array(buffer, 0, 2);
  if (Atomics.load(state, 1) === 1) return -1;
  const used = Atomics.load(state, 0);
  const free = buffer.byteLength - HEADER - used;
  // A UTF-16 unit takes at least one byte: the rest need not be encoded.
  const head = text.length > free ? text.slice(0, free) : text;
  const bytes = new Uint8Array(head.length * 3);
  // encodeInto stops before a character that does not fit, but not into shared memory.
  const { read, written } = new TextEncoder().encodeInto(head, bytes.subarray(0, Math.min(free, bytes.length)));
  new Uint8Array(buffer, HEADER + used, written).set(bytes.subarray(0, written));
  Atomics.store(state, 0, used + written);
  if (read === text.length) return free - written;
  Atomics.store(state, 1, 1);
  return -1;
}

/**
 * @param {SharedArrayBuffer} buffer
 * @returns {{ text: string, truncated: boolean }}
 */
export function readOutput(buffer) {
  const state = new Int32Array(buffer, 0, 2);
  // A decoder refuses shared memory.
  const bytes = new Uint8Array(buffer, HEADER, Atomics.load(state, 0)).slice();
  return { text: new TextDecoder().decode(bytes), truncated: Atomics.load(state, 1) === 1 };
}
