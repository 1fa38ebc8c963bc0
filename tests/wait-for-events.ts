import { vi } from "vitest";

// A test's event comes when the machine gets to it: on a busy one, seconds after vitest's deadline of 1 s. So only the
// test's own limit ends a wait. It is a little longer, so that the failed wait can report its last state.
const LONGEST_MS = 240_000;

// In shared processes this file runs before each test file, but must act only once.
const { waitFor } = vi;
if (waitFor.name !== "waitForAsLongAsItTakes")
  vi.waitFor = function waitForAsLongAsItTakes(check, options) {
    const given = typeof options === "object" ? options : {};
    return waitFor(check, { interval: 20, ...given, timeout: LONGEST_MS });
  };
