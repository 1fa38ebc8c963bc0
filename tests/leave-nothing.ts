import { afterAll, expect, vi } from "vitest";

// Most test files share a process in `npm test` (scripts/test.mjs): what one of them leaves there, the next would run with.
const EVENTS = ["SIGHUP", "SIGINT", "SIGTERM", "unhandledRejection", "uncaughtException"];

const look = () => ({
  cwd: process.cwd(),
  argv: process.argv,
  env: { ...process.env },
  listeners: EVENTS.map((name) => `${name}: ${process.listenerCount(name)}`),
});

// It is taken anew before each file is imported.
const before = look();

afterAll(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
  vi.useRealTimers();
  expect(
    look(),
    "what this file left in its process; scripts/test.mjs lists files with a process of their own",
  ).toEqual(before);
});
