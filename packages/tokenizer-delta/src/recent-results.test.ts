import { expect, it } from "vitest";
import { RecentResults } from "./recent-results.js";

it("computes a result once, until newer ones take its place", () => {
  const recent = new RecentResults<number>(2, 3);
  const computed: string[] = [];
  const get = (key: string) =>
    recent.get(key, () => {
      computed.push(key);
      return key.length;
    });
  expect([get("a"), get("a"), get("bb"), get("a")]).toEqual([1, 1, 2, 1]);
  expect(computed).toEqual(["a", "bb"]);
  get("ccc");
  expect([get("bb"), get("a")]).toEqual([2, 1]);
  expect(computed).toEqual(["a", "bb", "ccc", "a"]);
});

it("keeps no result of a long key, and none of a computation that failed", () => {
  const recent = new RecentResults<string>(2, 3);
  let count = 0;
  for (let i = 0; i < 2; i++) recent.get("long", () => String(count++));
  expect(count).toBe(2);
  expect(() =>
    recent.get("a", () => {
      throw new Error("no");
    }),
  ).toThrow();
  expect(recent.get("a", () => "yes")).toBe("yes");
});
