import { describe, expect, it } from "vitest";
import { limitWasmMemory, PAGE } from "./limit-wasm-memory.mjs";

/** The module (module (memory (export "m") 1) (func)) with the given bytes as its limits. */
function makeModule(memory: number[]): Uint8Array {
  const magic = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0];
  const types = [1, 4, 1, 0x60, 0, 0];
  const functions = [3, 2, 1, 0];
  const exports = [7, 5, 1, 1, 0x6d, 2, 0];
  const code = [10, 4, 1, 2, 0, 0x0b];
  return Uint8Array.from([...magic, ...types, ...functions, 5, memory.length + 1, 1, ...memory, ...exports, ...code]);
}

/** The types of Node have no WebAssembly. */
interface WebAssemblyApi {
  Module: new (binary: Uint8Array) => object;
  Instance: new (module: object) => { exports: { m: { buffer: ArrayBuffer; grow(pages: number): number } } };
}

const LIMITS = { "no maximum": [0, 1], "a maximum": [1, 1, 0x80, 0x80, 0x04] };

describe("the memory of a WebAssembly module", () => {
  it.each(Object.entries(LIMITS))("grows up to its new limit only (%s before)", (_, memory) => {
    const { Instance, Module } = (globalThis as never as { WebAssembly: WebAssemblyApi }).WebAssembly;
    const { m } = new Instance(new Module(limitWasmMemory(makeModule(memory), 300))).exports;
    expect(m.grow(299)).toBe(1);
    expect(m.buffer.byteLength).toBe(300 * PAGE);
    expect(() => m.grow(1)).toThrow(RangeError);
  });

  it("cannot be smaller than the module's initial memory", () => {
    expect(() => limitWasmMemory(makeModule([0, 20]), 19)).toThrow(/1310720 .* 1245184/);
    expect(() => limitWasmMemory(Uint8Array.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]), 1)).toThrow(/memory/);
  });
});
