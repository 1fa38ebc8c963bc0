import { hashSeed, type LoadedImage } from "@cria/core";
import { pack, unpack } from "../jobs/pack.js";

/** Uniform in [0, 1), from a seed. */
export function makeRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = hashSeed(state, 1);
    return (state >>> 0) / 2 ** 32;
  };
}

/** The beginning of bytes, with some of them changed. */
export function damage(given: Uint8Array, random: () => number): Uint8Array {
  const damaged = given.slice(0, Math.ceil(given.length * (0.5 + random() / 2)));
  for (let i = 0; i < 8; i++) damaged[Math.floor(random() * damaged.length)]! ^= 1 + Math.floor(255 * random());
  return damaged;
}

const NONSENSE = [null, -1, 1.5, 2 ** 40, Number.NaN, "", "../../../etc", "x".repeat(5000), [], {}, true];

/** A copy with one value, at a random place, replaced, or one value of a typed array. */
export function mutate<T>(given: T, random: () => number): unknown {
  const images = new Map<string, LoadedImage>();
  const bytes = pack(given, (image) => images.set(image.hash, image));
  const copy = unpack(bytes, (sha) => ({ ...images.get(sha) })) as Record<string, unknown>;
  let at: Record<string, unknown> = copy;
  for (;;) {
    const keys = Object.keys(at);
    const key = keys[Math.floor(random() * keys.length)];
    if (key === undefined) return copy;
    const value = at[key];
    if (value instanceof Int32Array || value instanceof Float32Array) {
      if (value.length > 0)
        value[Math.floor(random() * value.length)] = [-1, 2 ** 30, 1e9, 0][Math.floor(random() * 4)]!;
      return copy;
    }
    const isInside = typeof value === "object" && value !== null && !(value instanceof Uint8Array);
    if (isInside && Object.keys(value).length > 0 && random() < 0.85) {
      at = value as Record<string, unknown>;
      continue;
    }
    if (random() < 0.3) delete at[key];
    else at[key] = NONSENSE[Math.floor(random() * NONSENSE.length)];
    return copy;
  }
}
