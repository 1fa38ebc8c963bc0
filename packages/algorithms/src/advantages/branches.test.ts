import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type AdvantageInputs, advantageEstimators, type BranchSegment } from "../index.js";

fc.configureGlobal({ seed: Number(process.env.CRIA_SEED ?? 1), numRuns: 100 });

interface Token {
  reward: number;
  mask: number;
  value: number;
  logprob: number;
}
interface Tree {
  segments: { tokens: Token[]; parent: number }[];
  /** The episode's own reward, which lies on the last sampled token of all. */
  episode: number;
}

const sixteenths = (min: number, max: number) => fc.integer({ min: 16 * min, max: 16 * max }).map((x) => x / 16);
const token = fc.record({
  reward: fc.oneof(fc.constant(0), sixteenths(-1, 1)),
  mask: fc.constantFrom(0, 1, 1),
  value: sixteenths(-2, 2),
  logprob: sixteenths(-3, -1),
});
/** Segments of any shape: several first ones, empty ones, and ones without a sampled token. */
const trees = fc.record({
  episode: sixteenths(-2, 2),
  segments: fc
    .array(fc.tuple(fc.array(token, { maxLength: 4 }), fc.nat({ max: 7 })), { minLength: 1, maxLength: 7 })
    .map((list) => list.map(([tokens, pick], i) => ({ tokens, parent: (pick % (i + 1)) - 1 }))),
});

function layOut(list: readonly Tree[], more: Partial<AdvantageInputs> = {}): AdvantageInputs {
  const tokens = list.flatMap((tree) => tree.segments.flatMap((segment) => segment.tokens));
  const rewards = tokens.map(({ reward }) => reward);
  const offsets = [0];
  const segments: BranchSegment[][] = [];
  for (const tree of list) {
    const first = offsets.at(-1)!;
    let end = 0;
    segments.push(
      tree.segments.map(({ tokens: own, parent }) => {
        end += own.length;
        return { start: end - own.length, end, parent };
      }),
    );
    offsets.push(first + end);
    const last = tokens.findLastIndex((each, t) => t >= first && t < first + end && each.mask === 1);
    if (last >= 0) rewards[last]! += tree.episode;
  }
  return {
    tokenLevelRewards: rewards,
    responseMask: tokens.map(({ mask }) => mask),
    offsets,
    groups: list.map(() => "a"),
    values: tokens.map(({ value }) => value),
    baselines: list.map(() => 0.25),
    oldLogprobs: tokens.map(({ logprob }) => logprob),
    sumPiSquared: tokens.map(({ logprob }) => Math.exp(2 * logprob) + (1 - Math.exp(logprob)) ** 2),
    segments,
    episodeRewards: list.map(({ episode }) => episode),
    ...more,
  };
}

/** Each path of a tree as a conversation by itself, with the place of each of its tokens in the tree. */
function listPaths({ segments, episode }: Tree): { tree: Tree; at: number[] }[] {
  const starts = segments.map((_, s) => segments.slice(0, s).reduce((sum, { tokens }) => sum + tokens.length, 0));
  const walk = (s: number): number[] => (s < 0 ? [] : [...walk(segments[s]!.parent), s]);
  const isSampled = (s: number) => segments[s]!.tokens.some(({ mask }) => mask === 1);
  const goesOn = (s: number): boolean => segments.some((other, c) => other.parent === s && (isSampled(c) || goesOn(c)));
  return segments.flatMap((_, s) => {
    if (!isSampled(s) || goesOn(s)) return [];
    const along = walk(s);
    const at = along.flatMap((each) => segments[each]!.tokens.map((_, k) => starts[each]! + k));
    return [
      { tree: { segments: [{ tokens: along.flatMap((each) => segments[each]!.tokens), parent: -1 }], episode }, at },
    ];
  });
}

describe("trajectories that branch", () => {
  it.each([
    ["gae", { gamma: 0.9, lam: 0.5 }],
    ["gae", { gamma: 1, lam: 0.95 }],
    ["reinforce_plus_plus", { gamma: 0.9 }],
    ["remax", {}],
  ] as const)("%s %j is, at each token, the mean over its paths of each path by itself", (name, options) => {
    fc.assert(
      fc.property(trees, (tree) => {
        const estimate = advantageEstimators.get(name);
        const { returns } = estimate(layOut([tree], options));
        const sums = new Float64Array(returns.length);
        const counts = new Float64Array(returns.length);
        for (const path of listPaths(tree)) {
          const alone = estimate(layOut([path.tree], { ...options, segments: undefined, episodeRewards: undefined }));
          path.at.forEach((t, k) => {
            sums[t]! += alone.returns[k]!;
            counts[t]!++;
          });
        }
        for (const [t, value] of returns.entries())
          expect(value).toBeCloseTo(counts[t]! > 0 ? sums[t]! / counts[t]! : 0, 4);
      }),
    );
  });

  it("have the token baselines of their places, along each path", () => {
    fc.assert(
      fc.property(fc.array(trees, { minLength: 1, maxLength: 3 }), (list) => {
        const inputs = layOut(list);
        const { advantages, returns } = advantageEstimators.get("optimal_token_baseline")(inputs);
        /** By place: tokens, their W, and whose they are. */
        const places = new Map<number, Map<number, { energy: number; tree: number }>>();
        list.forEach((tree, i) => {
          for (const { at } of listPaths(tree)) {
            let place = 0;
            let energy = 0;
            for (const k of at) {
              const t = inputs.offsets[i]! + k;
              if (!inputs.responseMask[t]) continue;
              energy += 1 - 2 * Math.exp(inputs.oldLogprobs![t]!) + inputs.sumPiSquared![t]!;
              const tokens = places.get(place) ?? new Map();
              places.set(place++, tokens.set(t, { energy, tree: i }));
            }
          }
        });
        for (const tokens of places.values()) {
          const entries = [...tokens];
          const total = entries.reduce((sum, [, { energy }]) => sum + energy, 0);
          const mean = entries.reduce((sum, [t, { energy }]) => sum + energy * returns[t]!, 0) / total;
          const isAlone = new Set(entries.map(([, { tree }]) => tree)).size < 2;
          for (const [t] of entries) expect(advantages[t]).toBeCloseTo(returns[t]! - (isAlone ? 0 : mean), 4);
        }
      }),
    );
  });

  it("do not bootstrap from a sibling: the numbers of two answers to one prompt", () => {
    // [shared] -> [A] and [B], values 0.5 0.4 0.2, the episode worth 1.
    const make = (value: number): Token => ({ reward: 0, mask: 1, value, logprob: -1 });
    const segments = [
      { tokens: [make(0.5)], parent: -1 },
      { tokens: [make(0.4)], parent: 0 },
      { tokens: [make(0.2)], parent: 0 },
    ];
    const { returns } = advantageEstimators.get("gae")(layOut([{ segments, episode: 1 }], { gamma: 1, lam: 0.5 }));
    // delta + lam A_next: A 0.6, B 0.8; shared 0.3 - 0.5 + 0.5 * 0.7.
    expect([...returns].map((x) => Number(x.toFixed(6)))).toEqual([0.65, 1, 1]);
  });

  it("have one outcome for all conversations of an episode, by grpo: verl's values for several outputs of a session", () => {
    // Outputs of sessions, the last of each with its reward; verl leaves out what others earned.
    const sessions = [
      [[0], [1, 2, 3, 4]],
      [
        [0, 0],
        [150, 150],
      ],
      [[4, 5, 6, 7]],
      [[8, 9, 10, 11]],
    ];
    const list = sessions.map((outputs) => ({
      segments: outputs.map((rewards) => ({
        tokens: rewards.map((reward): Token => ({ reward, mask: 1, value: 0, logprob: -1 })),
        parent: -1,
      })),
      episode: 0,
    }));
    const { advantages } = advantageEstimators.get("grpo")(layOut(list));
    // Sums 10, 300, 22 and 38: mean 92.5, unbiased deviation 138.8128716...
    const deviation = Math.sqrt((82.5 ** 2 + 207.5 ** 2 + 70.5 ** 2 + 54.5 ** 2) / 3);
    const expected = [10, 300, 22, 38].map((sum) => (sum - 92.5) / deviation);
    const tokens = sessions.flatMap((outputs, i) => outputs.flat().map(() => expected[i]!));
    expect(advantages).toHaveLength(tokens.length);
    for (const [t, value] of tokens.entries()) expect(advantages[t]).toBeCloseTo(value, 5);
  });

  it("in one line have the bits of a conversation without segments, for every estimator", () => {
    fc.assert(
      fc.property(fc.array(trees, { minLength: 2, maxLength: 4 }), (list) => {
        const lines = list.map(({ segments, episode }) => ({
          episode,
          segments: segments.map(({ tokens }, s) => ({ tokens, parent: s - 1 })),
        }));
        const more = { gamma: 0.9, lam: 0.7, rewardParts: [{ values: lines.map((_, i) => i), weight: 1 }] };
        const cut = layOut(lines, more);
        const whole = { ...cut, segments: undefined, episodeRewards: undefined };
        for (const name of advantageEstimators.names()) {
          // Its outcome is the episode's own reward, branches or not, and its turns would end where segments do.
          if (name === "mt_grpo") continue;
          const estimate = advantageEstimators.get(name);
          expect(estimate(cut), name).toEqual(estimate(whole));
        }
      }),
    );
  });
});
