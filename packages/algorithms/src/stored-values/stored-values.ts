import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { expect } from "vitest";

/** Values of other libraries' functions, stored by a script in `fixtures`. */
export function readStored<T>(file: string): T {
  const folder = join(import.meta.dirname, "..", "..", "fixtures");
  return JSON.parse(gunzipSync(readFileSync(join(folder, file))).toString()) as T;
}

/** Compares entries within `tolerance`, plus the digits that are lost when large numbers cancel. */
export function expectClose(actual: ArrayLike<number>, expected: readonly number[], tolerance = 1e-6): void {
  expect(actual.length).toBe(expected.length);
  const largest = expected.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
  for (let i = 0; i < expected.length; i++)
    expect(Math.abs(actual[i]! - expected[i]!), `entry ${i}: ${actual[i]} for ${expected[i]}`).toBeLessThanOrEqual(
      tolerance * (Math.abs(expected[i]!) + 0.1 * largest) + 1e-12,
    );
}

/** Compares a number within `tolerance`. */
export function expectNear(actual: number, expected: number, what: string, tolerance = 1e-6): void {
  expect(Math.abs(actual - expected), `${what}: ${actual} for ${expected}`).toBeLessThanOrEqual(
    tolerance * Math.abs(expected) + 1e-9,
  );
}

/** Offsets of rows of equal width. */
export const equalRows = (tokens: number, width: number) =>
  Int32Array.from({ length: tokens / width + 1 }, (_, i) => i * width);

/** Offsets of the sequences that have any token: others never reach a loss. */
export function toOffsets(lengths: readonly number[]): Int32Array {
  const offsets = [0];
  for (const length of lengths) if (length > 0) offsets.push(offsets.at(-1)! + length);
  return Int32Array.from(offsets);
}
