/** @see limit-wasm-memory.mjs */
export function limitWasmMemory(wasm: Uint8Array, mostPages: number): Uint8Array;
