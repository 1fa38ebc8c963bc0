import type { UnjudgedTrajectory } from "@cria/episodes";
import { pack } from "../jobs/pack.js";
import { compareBits } from "./audit.js";

/** The result of auditing a conversation. `open`: undecided; `none`: it cannot be replayed. */
export type Verdict = { is: "same" | "none" } | { is: "different" | "open"; reason: string };

/** The first token, mask or logprob that differs; null: none. */
export function compareTokens(held: UnjudgedTrajectory, own: UnjudgedTrajectory): string | null {
  return (
    compareBits("token", held.tokenIds, own.tokenIds) ??
    compareBits("mask", held.responseMask, own.responseMask) ??
    compareBits("logprob", held.rolloutLogprobs, own.rolloutLogprobs)
  );
}

/** The first of these fields that differs; null: none. */
export function compareFields<Field extends string>(
  held: { [field in Field]?: unknown },
  own: { [field in Field]?: unknown },
  fields: readonly Field[],
): string | null {
  for (const field of fields)
    if (!isEqual(held[field], own[field])) return `${field}: ${show(held[field])}, here ${show(own[field])}`;
  return null;
}

export function isEqual(one: unknown, other: unknown): boolean {
  const [left, right] = [one, other].map((value) => pack({ value }, () => undefined));
  return Buffer.compare(left!, right!) === 0;
}

const show = (value: unknown) =>
  (JSON.stringify(value, (_, each) => (ArrayBuffer.isView(each) ? "bytes" : each)) ?? "nothing").slice(0, 200);
