/** @see limit-wasm-memory.mjs */
export const PAGE: number;
export function limitWasmMemory(binary: Uint8Array, maxPages: number): Uint8Array;
