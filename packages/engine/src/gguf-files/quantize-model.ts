import { ConfigError } from "@cria/core";
import { callNative, getAddon } from "../native.js";

export interface QuantizeOptions {
  /** Path of the model's GGUF. */
  input: string;
  output: string;
  /** One of `listQuantizeTypes()`; case does not matter. */
  type: string;
  /** Default: all cores. */
  threads?: number;
}

/**
 * Types that a model can be quantized to, by llama-quantize's names, from most to least exact: F32, F16, BF16, Q8_0,
 * Q6_K, ...
 */
export function listQuantizeTypes(): string[] {
  return getAddon().quantizeTypes();
}

/**
 * Writes a model in another type with llama.cpp's own llama_model_quantize, off the event loop. Mixtures such as Q4_K_M
 * choose a type for each tensor, and rows that do not divide into blocks get the next best type. Already quantized
 * tensors are quantized again where their type changes, which loses more than starting from F32, F16 or BF16.
 * @throws ConfigError for an unknown type; EngineError when a file cannot be read or written (no partial file remains).
 */
export async function quantizeModel({ input, output, type, threads = 0 }: QuantizeOptions): Promise<void> {
  checkQuantizeType(type);
  await callNative(() => getAddon().quantizeGguf(input, output, type, threads));
}

/** @throws ConfigError that lists all types. */
export function checkQuantizeType(type: string): void {
  const types = listQuantizeTypes();
  if (types.includes(type.toUpperCase())) return;
  throw new ConfigError("is not a type that a model can be quantized to", {
    code: "config/bad-argument",
    subject: "quantize",
    expected: types.join(", "),
    received: type,
  });
}
