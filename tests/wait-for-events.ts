import { vi } from "vitest";

// What a test waits for comes when the machine gets to it: on a busy one, seconds after vitest's deadline of 1 s. So nothing but
// the test's own limit ends a wait; it is a little longer, so that the wait that failed can say what it last saw.
const LONGEST_MS = 240_000;

// Where files share a process, this runs before each, and has to be done once.
const { waitFor } = vi;
if (waitFor.name !== "waitForAsLongAsItTakes")
  vi.waitFor = function waitForAsLongAsItTakes(check, options) {
    const given = typeof options === "object" ? options : {};
    return waitFor(check, { interval: 20, ...given, timeout: LONGEST_MS });
  };
