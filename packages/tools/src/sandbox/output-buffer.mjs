/**
 * Output of a program, in memory that both threads see: what was written survives the end of its worker, and no flood of
 * messages can reach the other thread. Layout: int32 bytes written, int32 1 when something did not fit, then the bytes.
 */
const HEADER = 8;

/** @param {number} capacity bytes */
export function makeOutputBuffer(capacity) {
  return new SharedArrayBuffer(HEADER + capacity);
}

/**
 * Appends what fits; a character is never split.
 * @param {SharedArrayBuffer} buffer
 * @param {string} text
 */
export function writeOutput(buffer, text) {
  const state = new Int32Array(buffer, 0, 2);
  const used = Atomics.load(state, 0);
  const free = buffer.byteLength - HEADER - used;
  // A byte holds at most one UTF-16 unit: the rest need not be encoded.
  const head = text.length > free ? text.slice(0, free) : text;
  const bytes = new Uint8Array(head.length * 3);
  // encodeInto stops before a character that does not fit, but not into shared memory.
  const { read, written } = new TextEncoder().encodeInto(head, bytes.subarray(0, Math.min(free, bytes.length)));
  new Uint8Array(buffer, HEADER + used, written).set(bytes.subarray(0, written));
  Atomics.store(state, 0, used + written);
  if (read < text.length) Atomics.store(state, 1, 1);
}

/**
 * @param {SharedArrayBuffer} buffer
 * @returns {{ text: string, truncated: boolean }}
 */
export function readOutput(buffer) {
  const state = new Int32Array(buffer, 0, 2);
  // A decoder takes no shared memory.
  const bytes = new Uint8Array(buffer, HEADER, Atomics.load(state, 0)).slice();
  return { text: new TextDecoder().decode(bytes), truncated: Atomics.load(state, 1) === 1 };
}
