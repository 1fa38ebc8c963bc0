import { describe, expect, it } from "vitest";
import { makeStubImage } from "../testing/index.js";
import { numberByPlace } from "./number-images.js";

const vocabSize = 100;
/** In the order of their hashes; B has the lower ids. */
const [b, a, c] = [3, 2, 1].map((count, i) => ({
  first: vocabSize + [0, 3, 5][i]!,
  count,
  image: makeStubImage(i + 1),
})) as [Shown, Shown, Shown];
type Shown = { first: number; count: number; image: ReturnType<typeof makeStubImage> };

const show = ({ first, count }: Shown) => Array.from({ length: count }, (_, i) => first + i);

describe("numberByPlace", () => {
  it("gives a repeated image the ids of its first place", () => {
    const tokens = Int32Array.from([7, ...show(a), 8, ...show(b), ...show(a), 9, ...show(c), ...show(b), ...show(a)]);
    const shown = numberByPlace(tokens, [b, a, c]);
    expect(shown).toEqual([
      { ...a, first: 100 },
      { ...b, first: 102 },
      { ...c, first: 105 },
    ]);
    const [newA, newB, newC] = shown as [Shown, Shown, Shown];
    expect([...tokens]).toEqual([
      ...[7, ...show(newA), 8, ...show(newB), ...show(newA)],
      ...[9, ...show(newC), ...show(newB), ...show(newA)],
    ]);
  });

  it("leaves out hidden images, and keeps text unchanged", () => {
    const tokens = Int32Array.from([1, 99, ...show(c)]);
    expect(numberByPlace(tokens, [b, a, c])).toEqual([{ ...c, first: vocabSize }]);
    expect([...tokens]).toEqual([1, 99, vocabSize]);
    expect(numberByPlace(Int32Array.from([1, 2]), [])).toEqual([]);
  });
});
