import { largestNumber } from "@cria/episodes/internal";
import { z } from "zod";

export const number = z.number().min(-largestNumber).max(largestNumber);
/** Names with numbers: metrics. */
export const numbers = z
  .record(z.string().max(200), number)
  .refine((record) => Object.keys(record).length <= 1000, "more than 1,000 names");
export const text = z.string().max(16 * 1024 * 1024);

export const int32s = z.instanceof(Int32Array);
export const float32s = z.instanceof(Float32Array);

/** True if all values of a list are valid; much faster than a schema for each. */
export function every(values: ArrayLike<number>, isValid: (value: number, index: number) => boolean): boolean {
  for (let i = 0; i < values.length; i++) if (!isValid(values[i]!, i)) return false;
  return true;
}
