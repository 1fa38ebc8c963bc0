/** True if tests try all that they can, which takes minutes: `scripts/nightly/tests.mjs` sets the variable. */
export const isNightly = process.env.CRIA_NIGHTLY === "1";

/** Number of attempts of a test: `usual` in `npm test`, `nightly` by `scripts/nightly/tests.mjs`. */
export function amount(usual: number, nightly: number): number {
  return isNightly ? nightly : usual;
}

/** Every third of these; all of them at night. Tests of many like cases name their seed or order, so that a failure comes again. */
export function someOf<T>(cases: readonly T[]): readonly T[] {
  return isNightly ? cases : cases.filter((_, i) => i % 3 === 0);
}
