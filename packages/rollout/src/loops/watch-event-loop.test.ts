import { EventEmitter, once } from "node:events";
import { expect, it } from "vitest";
import { watchEventLoop } from "./watch-event-loop.js";

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
