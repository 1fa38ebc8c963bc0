import { afterEach, expect, it, vi } from "vitest";
import { recordCalls } from "./record-calls.js";

afterEach(() => vi.restoreAllMocks());

it("counts the time in which a call blocks the event loop, without time in which others have the CPU", () => {
  let now = 0;
  let waited = 0;
  vi.spyOn(performance, "now").mockImplementation(() => now);
  const target = {
    look(): void {
      now += 80;
      waited += 70;
    },
    read(): void {
      now += 80;
    },
  };
  const { recorded, calls } = recordCalls(target, ["look", "read"], () => waited);
  recorded.look();
  recorded.read();
  expect(calls.map(({ blockedMs }) => blockedMs)).toEqual([10, 80]);
});
