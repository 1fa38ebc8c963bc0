import { randomInt } from "node:crypto";
import type { StepMetrics } from "@cria/trainer";

/** A conversation, its sampler's logprobs, and the step's logprobs of the same tokens. */
export interface ScoredConversation {
  tokenIds: Int32Array;
  responseMask: Uint8Array;
  rolloutLogprobs: Float32Array;
  oldLogprobs: ArrayLike<number>;
}

/**
 * Largest distance of a conversation's logprobs from the step's: on average, and at one token. Honest samplers were at
 * most 7e-6 away at one token with F32, also with another kernel, and 2e-3 with Q8_0. A token that the policy did not
 * draw, or logprobs of other weights, are whole units away. The distance must also exceed `TIMES_OWN` times the
 * coordinator's own, so that a device with a less exact training graph shuts no worker out.
 */
const MOST = { own: { mean: 0.05, one: 1 }, other: { mean: 0.25, one: 3 } };
const TIMES_OWN = 4;

interface Difference {
  mean: number;
  one: number;
}

/** A random integer of at least 0, below a bound. */
type Draw = (below: number) => number;

/**
 * Compares workers' logprobs of their sampled tokens with those that the step computes anyway: a free audit of every
 * token of every class.
 */
export class SamplerCheck {
  /** Keyed by the token arrays, which are passed on unchanged. */
  private readonly holders = new WeakMap<Int32Array, { worker: string; isOwnClass: boolean }>();
  private last: Difference = { mean: 0, one: 0 };

  constructor(private readonly draw: Draw = randomInt) {}

  /** Remembers the worker of an accepted conversation. */
  heldBy(tokenIds: Int32Array, worker: string, isOwnClass: boolean): void {
    this.holders.set(tokenIds, { worker, isOwnClass });
  }

  /**
   * Lists the workers that must not score conversations, because their own logprobs are compared with the scores: all
   * that held one, if at least as many others are there. Otherwise at least half of the workers, drawn by chance, may
   * score only what they did not hold: no worker knows while it holds a conversation whether it will score it, too. An
   * only worker scores what it held: audits check it.
   * @param able workers that can score them; at least one is not listed.
   */
  listExcluded(conversations: readonly { tokenIds: Int32Array }[], able: readonly string[]): string[] {
    const found = conversations.flatMap(({ tokenIds }) => this.holders.get(tokenIds)?.worker ?? []);
    const holders = [...new Set(found)].filter((worker) => able.includes(worker));
    if (able.length >= 2 * holders.length) return holders;
    if (able.length < 2) return [];
    const left = [...able];
    while (left.length > able.length / 2) left.splice(this.draw(left.length), 1);
    return holders.filter((worker) => !left.includes(worker));
  }

  /**
   * With staleness, the distances also contain the policy's own movement. Conversations of the coordinator's class,
   * whose bits are audited, then measure this movement for those of other classes; without such conversations, no
   * worker is judged.
   * @param staleness number of updates between the policy that sampled the conversations and the one that scored
   * them.
   * @returns the untrustworthy workers, each with the reason, once.
   */
  check(conversations: readonly ScoredConversation[], staleness: number): Map<string, string> {
    const here = { mean: 0, one: 0 };
    let measures = 0;
    const held: { worker: string; isOwnClass: boolean; found: Difference }[] = [];
    for (const conversation of conversations) {
      const found = measure(conversation);
      const holder = this.holders.get(conversation.tokenIds);
      if (holder) held.push({ ...holder, found });
      if (holder && (staleness === 0 || !holder.isOwnClass)) continue;
      widen(here, found);
      measures++;
    }
    this.last = { mean: 0, one: 0 };
    const reasons = new Map<string, string>();
    for (const { worker, isOwnClass, found } of held) {
      widen(this.last, found);
      if (staleness > 0 && (isOwnClass || measures === 0)) continue;
      const most = MOST[isOwnClass ? "own" : "other"];
      for (const kind of ["mean", "one"] as const) {
        const bound = Math.max(most[kind], TIMES_OWN * here[kind]);
        if (found[kind] > bound && !reasons.has(worker))
          reasons.set(
            worker,
            `its logprobs are ${found[kind].toPrecision(3)} away from those of the policy ${kind === "mean" ? "on average over a conversation" : "at one token"}, more than ${bound.toPrecision(3)}`,
          );
      }
    }
    return reasons;
  }

  /** Largest distances among the workers' conversations in the last check. */
  metrics(): StepMetrics {
    return { "cluster/logprob_diff_mean": this.last.mean, "cluster/logprob_diff_max": this.last.one };
  }
}

function measure({ responseMask, rolloutLogprobs, oldLogprobs }: ScoredConversation): Difference {
  let [sum, count, one] = [0, 0, 0];
  for (let t = 0; t < responseMask.length; t++) {
    if (responseMask[t] !== 1) continue;
    const difference = Math.abs(rolloutLogprobs[t]! - oldLogprobs[t]!);
    sum += difference;
    count++;
    one = Math.max(one, difference);
  }
  return { mean: count > 0 ? sum / count : 0, one };
}

function widen(most: Difference, found: Difference): void {
  most.mean = Math.max(most.mean, found.mean);
  most.one = Math.max(most.one, found.one);
}
