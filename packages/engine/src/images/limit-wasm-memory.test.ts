import { expect, it } from "vitest";
import { limitWasmMemory } from "./limit-wasm-memory.mjs";

/** (module (memory 1) (func (export "grow") (param i32) (result i32) local.get 0 memory.grow)) */
const grower = Buffer.from(
  "0061736d0100000001060160017f017f0302010005030100010708010467726f7700000a08010600200040000b",
  "hex",
);

/** The types of Node have no WebAssembly. */
interface WebAssemblyApi {
  Module: new (wasm: Uint8Array) => object;
  Instance: new (module: object) => { exports: { grow(pages: number): number } };
}

function open(wasm: Uint8Array): (pages: number) => number {
  const { Instance, Module } = (globalThis as never as { WebAssembly: WebAssemblyApi }).WebAssembly;
  return new Instance(new Module(wasm)).exports.grow;
}

it("a module gets no memory beyond its limit", () => {
  expect(open(grower)(300)).toBe(1);
  const limited = open(limitWasmMemory(grower, 200));
  expect([limited(300), limited(199), limited(1)]).toEqual([-1, 1, -1]);
});

it("a module without memory is refused", () => {
  expect(() => limitWasmMemory(grower.subarray(0, 8), 1)).toThrow(/memory/);
});
