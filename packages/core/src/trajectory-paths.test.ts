import { expect, it } from "vitest";
import { listPaths } from "./trajectory-paths.js";

it("lists each way from a root to a leaf; a shared token is the first one's own", () => {
  const segment = (start: number, end: number, parent: number) => ({ start, end, parent, messages: [] });
  const segments = [
    segment(0, 3, -1),
    segment(3, 4, 0),
    segment(4, 6, 1),
    segment(6, 7, 1),
    segment(7, 9, 0),
    segment(9, 11, -1),
  ];
  const paths = listPaths({ tokenIds: new Int32Array(11), segments });
  expect(paths.map(({ indices, own }) => [[...indices], own])).toEqual([
    [[0, 1, 2, 3, 4, 5], 0],
    [[0, 1, 2, 3, 6], 4],
    [[0, 1, 2, 7, 8], 3],
    [[9, 10], 0],
  ]);
  const owned = paths.flatMap(({ indices, own }) => [...indices.slice(own)]);
  expect(owned.sort((a, b) => a - b)).toEqual(Array.from({ length: 11 }, (_, t) => t));
  expect(listPaths({ tokenIds: [5, 6] })).toEqual([{ indices: Int32Array.of(0, 1), own: 0 }]);
});
