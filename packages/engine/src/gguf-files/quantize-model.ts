import { ConfigError } from "@cria/core";
import { callNative, getAddon } from "../native.js";

export interface QuantizeOptions {
  /** A model's GGUF. */
  input: string;
  output: string;
  /** One of `listQuantizeTypes()`, in any case of letters. */
  type: string;
  /** Default: all cores. */
  threads?: number;
}

/** What a model can be quantized to, as llama-quantize calls it, the most exact first: F32, F16, BF16, Q8_0, Q6_K, ... */
export function listQuantizeTypes(): string[] {
  return getAddon().quantizeTypes();
}

/**
 * Writes a model in another type by llama.cpp's own llama_model_quantize, off the event loop: mixtures such as Q4_K_M choose a
 * type for each tensor, and rows that do not divide into blocks take the next best one. What is quantized already is
 * quantized again where its type changes, which loses more than starting from F32, F16 or BF16.
 * @throws ConfigError for an unknown type; EngineError when a file cannot be read or written (nothing is left behind).
 */
export async function quantizeModel({ input, output, type, threads = 0 }: QuantizeOptions): Promise<void> {
  checkQuantizeType(type);
  await callNative(() => getAddon().quantizeGguf(input, output, type, threads));
}

/** @throws ConfigError naming all types. */
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
