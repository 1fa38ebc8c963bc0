import { EventEmitter, once } from "node:events";
import { afterEach, expect, it, vi } from "vitest";
import { makeFakeRollout } from "../testing/index.js";
import { watchEventLoop } from "./watch-event-loop.js";

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

it("reports a tool that computes without awaiting", async () => {
  const heard = new EventEmitter();
  const watch = watchEventLoop((warning) => heard.emit("warning", warning), { everyMs: 1, longestMs: 50 });
  const warned = once(heard, "warning");
  const started = performance.now();
  while (performance.now() - started < 100);
  const [, seconds] = /event loop stood still[\s\S]* (\d+\.\d) s/.exec((await warned)[0]) ?? [];
  expect(Number(seconds)).toBeGreaterThanOrEqual(0.1);
  watch.stop();
});

it("is on while conversations are held and judged", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  let passedMs = 0;
  const now = performance.now.bind(performance);
  vi.spyOn(performance, "now").mockImplementation(() => now() + passedMs);
  const warnings: string[] = [];
  const reward = () => {
    passedMs += 20_000;
    vi.advanceTimersByTime(1000);
    return 1;
  };
  await makeFakeRollout({ reply: () => "x", reward, onWarning: (warning) => warnings.push(warning) }).run();
  expect(warnings).toEqual([expect.stringContaining("event loop")]);
  expect(vi.getTimerCount()).toBe(0);
});
