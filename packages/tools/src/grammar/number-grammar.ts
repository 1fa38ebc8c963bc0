import { anyOf, literal } from "./grammar-writer.js";

export interface NumberBounds {
  /** Inclusive, unless `exclusiveLeast` is set; infinite without a bound. */
  least: number;
  most: number;
  exclusiveLeast: boolean;
  exclusiveMost: boolean;
}

const DIGITS = 16;
const LARGEST = 10n ** BigInt(DIGITS) - 1n;
const NATURAL = '("0" | [1-9] [0-9]{0,15})';

/** Whole numbers within the bounds, of at most 16 digits; null when there is none. */
export function integerGrammar(bounds: NumberBounds): string | null {
  const { least, most } = wholeBounds(bounds);
  if (least === -LARGEST && most === LARGEST) return `"-"? ${NATURAL}`;
  if (least > most) return null;
  const parts: string[] = [];
  if (least < 0n) parts.push(`"-" ${naturals(most < 0n ? -most : 1n, -least)}`);
  if (most >= 0n) parts.push(naturals(least > 0n ? least : 0n, most));
  return anyOf(parts);
}

/**
 * Numbers within the bounds; null when none can be written. Without bounds they may have fractions and exponents; with
 * bounds they are whole numbers, with up to six decimals where any decimals stay within the bounds.
 */
export function numberGrammar(bounds: NumberBounds): string | null {
  const fraction = '("." [0-9]{1,6})?';
  if (bounds.least === Number.NEGATIVE_INFINITY && bounds.most === Number.POSITIVE_INFINITY) {
    return `"-"? ${NATURAL} ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,2})?`;
  }
  const { least, most } = wholeBounds(bounds);
  // Decimals lead away from zero, up to the next whole number, which must lie within the bounds.
  const parts: string[] = [];
  const add = (sign: string, from: bigint, to: bigint, toReaches: boolean) => {
    const end = toReaches ? to : to - 1n;
    if (from <= end) parts.push(`${sign}${naturals(from, end)} ${fraction}`);
    if (from <= to) parts.push(`${sign}${naturals(to, to)}`);
  };
  // Below an exclusive whole bound b the decimals of b - 1 stay below b. A fractional bound gives no such guarantee.
  const reaches = (bound: number, isExclusive: boolean) =>
    !Number.isFinite(bound) || (isExclusive && Number.isInteger(bound));
  if (most >= 0n && least <= most) add("", least > 0n ? least : 0n, most, reaches(bounds.most, bounds.exclusiveMost));
  if (least < 0n && least <= most)
    add('"-" ', most < 0n ? -most : 1n, -least, reaches(bounds.least, bounds.exclusiveLeast));
  return parts.length === 0 ? null : anyOf(parts);
}

function wholeBounds(bounds: NumberBounds): { least: bigint; most: bigint } {
  const clamp = (value: bigint) => (value > LARGEST ? LARGEST : value < -LARGEST ? -LARGEST : value);
  const up = Math.ceil(bounds.least);
  const down = Math.floor(bounds.most);
  const least = Number.isFinite(up) ? BigInt(up) + (bounds.exclusiveLeast && up === bounds.least ? 1n : 0n) : -LARGEST;
  const most = Number.isFinite(down)
    ? BigInt(down) - (bounds.exclusiveMost && down === bounds.most ? 1n : 0n)
    : LARGEST;
  return { least: clamp(least), most: clamp(most) };
}

/** Whole numbers of [from, to], 0 <= from <= to, without leading zeros. */
function naturals(from: bigint, to: bigint): string {
  const parts: string[] = [];
  for (let length = String(from).length; length <= String(to).length; length++) {
    const least = length === 1 ? 0n : 10n ** BigInt(length - 1);
    const most = 10n ** BigInt(length) - 1n;
    parts.push(...sameLength(String(from > least ? from : least), String(to < most ? to : most)));
  }
  return anyOf(parts);
}

/** Digit strings between two of the same length, as alternatives. */
function sameLength(from: string, to: string): string[] {
  if (from === to) return [literal(from)];
  const [first, last] = [Number(from[0]), Number(to[0])];
  const rest = from.length - 1;
  if (rest === 0) return [digits(first, last)];
  if (first === last) return sameLength(from.slice(1), to.slice(1)).map((part) => `${literal(from[0]!)} ${part}`);
  const parts: string[] = [];
  const wholeFrom = /^0*$/.test(from.slice(1)) ? first : first + 1;
  const wholeTo = /^9*$/.test(to.slice(1)) ? last : last - 1;
  if (wholeFrom > first) parts.push(...sameLength(from.slice(1), "9".repeat(rest)).map((part) => `"${first}" ${part}`));
  if (wholeFrom <= wholeTo) parts.push(`${digits(wholeFrom, wholeTo)} [0-9]{${rest}}`);
  if (wholeTo < last) parts.push(...sameLength("0".repeat(rest), to.slice(1)).map((part) => `"${last}" ${part}`));
  return parts;
}

function digits(first: number, last: number): string {
  return first === last ? `"${first}"` : `[${first}-${last}]`;
}
