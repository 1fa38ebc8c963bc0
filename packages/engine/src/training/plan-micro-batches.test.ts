import { pickRows } from "@cria/core/internal";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type PackCost, packRows } from "./pack-rows.js";
import { type PlanInput, planMicroBatches, sumGradients } from "./plan-micro-batches.js";

// Fixed values, unless CRIA_SEED says otherwise.
fc.configureGlobal({ seed: Number(process.env.CRIA_SEED ?? 1) });

/** Few different tokens, so that prefixes are shared at any depth, and sequences are equal or end within another. */
const sequences = fc.array(fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 9 }), { maxLength: 7 });
const costs = fc.record<PackCost>({
  perToken: fc.integer({ min: 1, max: 60 }),
  perTokenPair: fc.integer({ min: 0, max: 5 }),
  pairs: fc.constantFrom("seen", "all"),
});
const limits = fc.integer({ min: 1, max: 40 });

/** Every different head of the sequences is one token of their tree. */
function listHeads(list: readonly ArrayLike<number>[]): string[] {
  return [
    ...new Set(
      list.flatMap((ids) =>
        Array.from(ids, (_, t) =>
          Array.from(ids)
            .slice(0, t + 1)
            .join(),
        ),
      ),
    ),
  ];
}

function costOf(list: readonly ArrayLike<number>[], { perToken, perTokenPair, pairs }: PackCost): number {
  const heads = listHeads(list);
  const seen = heads.reduce((sum, head) => sum + head.split(",").length, 0);
  return heads.length * perToken + (pairs === "all" ? heads.length ** 2 : seen) * perTokenPair;
}

/** The least cost of cutting `list` into rows, over all possible cuts. */
function findLeastCost(list: number[][], cost: PackCost, limit: number): number {
  if (list.length === 0) return 0;
  const counts = list.map((_, i) => i + 1).filter((n) => n === 1 || listHeads(list.slice(0, n)).length <= limit);
  return Math.min(...counts.map((n) => costOf(list.slice(0, n), cost) + findLeastCost(list.slice(n), cost, limit)));
}

const inTreeOrder = (a: number[], b: number[]) => {
  const t = a.findIndex((token, i) => token !== b[i]);
  return t < 0 ? -1 : t >= b.length ? 1 : a[t]! - b[t]!;
};

describe("rows of sequences", () => {
  it("hold each sequence once, each shared token once, no more tokens than allowed, at the least cost", () => {
    fc.assert(
      fc.property(sequences, costs, limits, (lists, cost, limit) => {
        const rows = packRows(
          lists.map((ids) => Int32Array.from(ids)),
          cost,
          limit,
        );
        const members = rows.map((row) => row.sequences.map(({ index }) => lists[index]!));
        expect(rows.flatMap((row) => row.sequences.map(({ index }) => index)).sort((a, b) => a - b)).toEqual(
          lists.map((_, i) => i),
        );
        rows.forEach((row, r) => {
          expect(row.length).toBe(listHeads(members[r]!).length);
          if (row.sequences.length > 1) expect(row.length).toBeLessThanOrEqual(limit);
        });
        const total = members.reduce((sum, list) => sum + costOf(list, cost), 0);
        expect(total).toBe(findLeastCost([...lists].sort(inTreeOrder), cost, limit));
      }),
      { numRuns: 300 },
    );
  });

  it("branch again where a branch is shared, though their prompt alone would be one level", () => {
    const tree = [
      [1, 2, 3, 4, 5],
      [1, 2, 3, 4, 6],
      [1, 2, 7, 8],
      [1, 2, 7, 9],
    ].map((ids) => Int32Array.from(ids));
    const cost: PackCost = { perToken: 1, perTokenPair: 1, pairs: "seen" };
    const [row, ...others] = packRows(tree, cost, 100);
    expect(others).toEqual([]);
    expect(row).toEqual({
      sequences: [
        { index: 0, shared: 0, start: 0 },
        { index: 1, shared: 4, start: 5 },
        { index: 2, shared: 2, start: 6 },
        { index: 3, shared: 3, start: 8 },
      ],
      length: 9,
    });
    // If all pairs of a row cost: 9^2 + 9 against (6^2 + 6) + (5^2 + 5).
    expect(packRows(tree, { ...cost, pairs: "all" }, 100).map(({ length }) => length)).toEqual([6, 5]);
  });
});

/** Each scored token of each sequence, as in the micro-batches. */
const inputs = fc.array(
  fc
    .array(fc.integer({ min: 0, max: 2 }), { minLength: 2, maxLength: 12 })
    .chain((ids) =>
      fc
        .subarray(ids.map((_, t) => t).slice(1))
        .map((scored): PlanInput => ({ tokenIds: Int32Array.from(ids), scored: Int32Array.from(scored) })),
    ),
  { maxLength: 9 },
);

describe("micro-batches", () => {
  it("let each scored token see its own sequence, in order and at its positions, and nothing else", () => {
    fc.assert(
      fc.property(inputs, costs, limits, (given, cost, maxTokens) => {
        const plans = planMicroBatches(given, { maxTokens, cost, temperature: 1, adapter: true });
        const found = new Map<number, Int32Array>();
        for (const plan of plans) {
          const { rows, rowLength, tokens, positions, ends, sources, targets } = plan.microBatch;
          for (const array of [tokens, positions, ends]) expect(array.length).toBe(rows * rowLength);
          expect(rowLength % 8).toBe(0);
          // Assumption of the addon's kernels: a token ends after itself, and not after one that it continues.
          ends.forEach((end, place) => {
            const i = place % rowLength;
            const row = ends.subarray(place - i, place - i + rowLength);
            if (end > 0) expect(end).toBeGreaterThan(i);
            else expect([...row.subarray(i)].every((other) => other === 0)).toBe(true);
            row.subarray(0, i).forEach((other) => {
              if (other > i) expect(end > 0 && end <= other).toBe(true);
            });
          });
          const pairs = Array.from(sources, (source, k) => `${source} ${targets[k]}`);
          expect(new Set(pairs).size).toBe(pairs.length);
          plan.sequenceIndices.forEach((index, i) => {
            const { tokenIds, scored } = given[index]!;
            expect(found.has(index)).toBe(false);
            found.set(index, scored);
            expect(plan.offsets[i + 1]! - plan.offsets[i]!).toBe(scored.length);
            scored.forEach((t, k) => {
              const score = plan.scores[plan.offsets[i]! + k]!;
              expect(targets[score]).toBe(tokenIds[t]);
              const source = sources[score]!;
              const base = source - (source % rowLength);
              const seen = [];
              for (let place = base; place <= source; place++)
                if (source - base < ends[place]!) seen.push([tokens[place], positions[place]]);
              expect(seen).toEqual([...tokenIds.subarray(0, t)].map((token, position) => [token, position]));
            });
          });
        }
        expect([...found.keys()].sort((a, b) => a - b)).toEqual(
          given.map((_, i) => i).filter((i) => given[i]!.scored.length > 0),
        );
      }),
      { numRuns: 300 },
    );
  });

  it("score shared tokens once, for all sequences; gradients add up", () => {
    const scored = Int32Array.of(1, 2, 3);
    const given = [
      [5, 6, 7, 8],
      [5, 6, 7, 9],
      [5, 6, 7, 8],
    ].map((ids) => ({ tokenIds: Int32Array.from(ids), scored }));
    const cost: PackCost = { perToken: 1, perTokenPair: 1, pairs: "seen" };
    const [plan, ...others] = planMicroBatches(given, { maxTokens: 64, cost, temperature: 1, adapter: true });
    expect(others).toEqual([]);
    expect([...plan!.microBatch.targets]).toEqual([6, 7, 8, 9]);
    expect([...plan!.microBatch.ends]).toEqual([3, 3, 3, 0, 0, 0, 0, 0]);
    const order = [...plan!.sequenceIndices];
    const scores = order.map((index) => [0, 1, index === 1 ? 3 : 2]);
    expect([...plan!.scores]).toEqual(scores.flat());
    expect([...pickRows(Float32Array.of(10, 20, 30, 40), plan!.scores)]).toEqual(scores.flat().map((s) => 10 * s + 10));
    expect([...sumGradients(plan!.scores, 4, new Float32Array(9).fill(1))]).toEqual([3, 3, 2, 1]);
  });
});
