import type { TrajectorySegment } from "@cria/core";
import { FakeEngine } from "@cria/core/testing";
import { describe, expect, it } from "vitest";
import { makeBatch } from "./batch.js";
import { cutTrainSequences, evaluatePaths } from "./paths.js";

const segment = (start: number, end: number, parent: number): TrajectorySegment => ({
  start,
  end,
  parent,
  messages: [],
});
const tokenIds = Int32Array.of(10, 11, 12, 13, 14, 15, 16, 17, 18);
// 10 11 [12] -> 13 [14 15] and 16 [17]; another conversation: 18, without sampled tokens.
const branched = {
  uid: "a",
  tokenIds,
  promptLength: 2,
  responseMask: Uint8Array.of(0, 0, 1, 0, 1, 1, 0, 1, 0),
  segments: [segment(0, 3, -1), segment(3, 6, 0), segment(6, 8, 0), segment(8, 9, -1)],
};

describe("evaluatePaths", () => {
  it("evaluates each conversation, and gives each token its value once, after its own prefix", async () => {
    const engine = new FakeEngine({ reply: () => "" });
    const linear = { tokenIds: Int32Array.of(1, 2, 3), promptLength: 1, responseMask: Uint8Array.of(0, 1, 1) };
    const { sequences, owners, join } = evaluatePaths([branched, linear]);
    expect(owners).toEqual([0, 0, 1]);
    expect(sequences.map(({ tokenIds: ids, from }) => [[...ids], from])).toEqual([
      [[10, 11, 12, 13, 14, 15], 2],
      [[10, 11, 12, 16, 17], 4],
      [[1, 2, 3], 1],
    ]);
    const scores = await engine.score(sequences);
    const [joined, whole] = join(scores.map(({ logprobs }) => logprobs));
    // The fake's logprob is a function of a token and the one before it.
    const follow = async (before: number, token: number) =>
      (await engine.score([{ tokenIds: [before, token] }]))[0]!.logprobs[1]!;
    expect(joined![2]).toBe(await follow(11, 12));
    expect(joined![5]).toBe(await follow(14, 15));
    expect(joined![7]).toBe(await follow(16, 17));
    expect(joined![8]).toBe(0);
    expect(whole).toBe(scores[2]!.logprobs);
  });

  it("gives each token its likeliest ones once, as of its own prefix", async () => {
    const engine = new FakeEngine({ reply: () => "" });
    const linear = { tokenIds: Int32Array.of(1, 2, 3), promptLength: 1, responseMask: Uint8Array.of(0, 1, 1) };
    const { sequences, joinLikeliest } = evaluatePaths([branched, linear]);
    const scores = await engine.score(sequences, { likeliest: { count: 2 } });
    const [joined, whole] = joinLikeliest(scores.map(({ likeliest }) => likeliest!));
    const after = (before: number) => engine.listLikeliest([before], 2);
    for (const [t, before] of [
      [2, 11],
      [5, 14],
      [7, 16],
    ] as const) {
      expect([...joined!.ids.subarray(2 * t, 2 * t + 2)]).toEqual(after(before).map(({ id }) => id));
      expect([...joined!.logprobs.subarray(2 * t, 2 * t + 2)]).toEqual(after(before).map(({ logprob }) => logprob));
    }
    expect([...joined!.ids.subarray(16)]).toEqual([0, 0]);
    expect(whole).toBe(scores[2]!.likeliest);
    expect(evaluatePaths([]).joinLikeliest([])).toEqual([]);
  });
});

describe("cutTrainSequences", () => {
  it("puts each token into the loss of one conversation, with its columns", () => {
    const advantages = Float32Array.from(tokenIds);
    const paths = cutTrainSequences(branched, branched.responseMask, { advantages }, true);
    expect(
      paths.map(({ tokenIds: ids, lossMask }) => [[...(ids as Int32Array)], [...(lossMask as Uint8Array)]]),
    ).toEqual([
      [
        [10, 11, 12, 13, 14, 15],
        [0, 0, 1, 0, 1, 1],
      ],
      [
        [10, 11, 12, 16, 17],
        [0, 0, 0, 0, 1],
      ],
    ]);
    expect([...(paths[1]!.columns!.advantages as Float32Array)]).toEqual([0, 0, 0, 16, 17]);
    expect([...(paths[1]!.columns!.trajectoryTokens as Float32Array)]).toEqual([0, 0, 0, 4, 4]);
  });

  it("keeps the candidates of each token", () => {
    const ids = Int32Array.from({ length: 18 }, (_, k) => k);
    const candidates = { count: 2, ids, columns: { teacherLogprobs: Float32Array.from(ids, (id) => -id) } };
    const paths = cutTrainSequences(branched, branched.responseMask, {}, true, candidates);
    expect(paths.map((path) => [...path.candidates!.ids])).toEqual([
      [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
      [0, 1, 2, 3, 4, 5, 12, 13, 14, 15],
    ]);
    expect(Array.from(paths[1]!.candidates!.columns.teacherLogprobs!).slice(-2)).toEqual([-14, -15]);
  });

  it("a batch counts a branched trajectory once, with all its tokens", () => {
    const advantages = [new Float32Array(9).fill(1)];
    const batch = makeBatch([branched], { advantages, temperature: 1, responseLength: 7 });
    expect(batch.groups).toEqual(["a"]);
    expect(batch.sequences.get(0)).toHaveLength(2);
    expect([...(batch.lossMasks[0] as Uint8Array)]).toEqual([...branched.responseMask]);
  });
});
