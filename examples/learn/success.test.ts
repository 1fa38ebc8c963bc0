import { expect, it } from "vitest";
import { makeRandom, shuffle } from "./random.js";
import { summarize, wilsonInterval } from "./success.js";

it("Wilson's interval, beside published values", () => {
  const [low, high] = wilsonInterval(0.8, 10);
  expect(low).toBeCloseTo(0.4902, 4);
  expect(high).toBeCloseTo(0.9433, 4);
  expect(wilsonInterval(0, 20)[0]).toBe(0);
  expect(wilsonInterval(0, 20)[1]).toBeCloseTo(0.1611, 4);
  expect(wilsonInterval(1, 20)[0]).toBeCloseTo(0.8389, 4);
  expect(wilsonInterval(1, 20)[1]).toBe(1);
  expect(wilsonInterval(0, 0)).toEqual([0, 1]);
});

it("success of all rows weighs each row alike", () => {
  const all = summarize({ one: { rows: 30, success: 0.5 }, two: { rows: 10, success: 0.1 } });
  expect(all).toMatchObject({ rows: 40, success: 0.4 });
  expect(all.interval).toEqual(wilsonInterval(0.4, 40));
  expect(summarize({})).toMatchObject({ rows: 0, success: 0 });
});

it("the same seed gives the same numbers and the same order", () => {
  const draw = (seed: number) => {
    const random = makeRandom(seed);
    return Array.from({ length: 100 }, random);
  };
  expect(draw(1)).toEqual(draw(1));
  expect(draw(1)).not.toEqual(draw(2));
  for (const value of draw(1)) expect(value >= 0 && value < 1).toBe(true);
  const order = shuffle([1, 2, 3, 4, 5, 6, 7, 8], makeRandom(3));
  expect(order).toEqual(shuffle([1, 2, 3, 4, 5, 6, 7, 8], makeRandom(3)));
  expect([...order].sort()).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
});
