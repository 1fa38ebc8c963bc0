import { expect, it } from "vitest";
import { ChunkWindow } from "./chunk-window.js";

/** Sends chunks one after another, each acknowledged after `tookMs`. */
function feed(window: ChunkWindow, tookMs: number, count: number, from = 0): number {
  for (let chunk = 0; chunk < count; chunk++) window.learn(from + chunk * tookMs, from + (chunk + 1) * tookMs, true);
  return from + count * tookMs;
}

it("begins with one chunk, opens on a fast line, and stays narrow on a slow one", () => {
  const fast = new ChunkWindow();
  expect(fast.size).toBe(1);
  feed(fast, 20, 4);
  expect(fast.size).toBe(5);
  feed(fast, 20, 100);
  expect(fast.size).toBe(16);
  const slow = new ChunkWindow();
  feed(slow, 1_000, 100);
  expect(slow.size).toBe(1);
});

it("halves once for all chunks that were late together, and when one is not acknowledged", () => {
  const window = new ChunkWindow();
  const now = feed(window, 20, 100);
  for (let chunk = 0; chunk < 16; chunk++) window.learn(now, now + 2_000 + chunk, true);
  expect(window.size).toBe(8);
  window.learn(now + 3_000, now + 8_000, false);
  expect(window.size).toBe(4);
});

it("lets in as many as its size, in the order of asking", async () => {
  const window = new ChunkWindow();
  feed(window, 20, 1);
  const entered: number[] = [];
  for (let asker = 0; asker < 5; asker++) void window.enter().then(() => entered.push(asker));
  await Promise.resolve();
  expect(entered).toEqual([0, 1]);
  window.leave();
  await new Promise(setImmediate);
  expect(entered).toEqual([0, 1, 2]);
  feed(window, 20, 1);
  window.leave();
  await new Promise(setImmediate);
  expect(entered).toEqual([0, 1, 2, 3, 4]);
});
