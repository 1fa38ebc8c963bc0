import { defineConfig } from "vitest/config";
import { SlowFirst } from "./tests/slow-first.js";

// Most of what `npm test` runs shares processes (scripts/test.mjs): what a file leaves there is looked at.
const isShared = process.argv.includes("--no-isolate");
const shared = isShared ? ["./tests/leave-nothing.ts"] : [];

// Tests run against the TypeScript sources of every package ("cria-source" export condition); the native addon is the
// built one, with one thread each where tests load it: spinning threads on busy cores cost far more than they bring. Forks, not threads: a native addon's crash then fails one test file.
export default defineConfig({
  resolve: { conditions: ["cria-source", "node", "import", "default"] },
  ssr: { resolve: { conditions: ["cria-source", "node", "import", "default"] } },
  test: {
    include: [
      "packages/*/src/**/*.test.ts",
      "apps/*/src/**/*.test.ts",
      "benchmarks/**/*.test.ts",
      "deploy/**/*.test.ts",
      "examples/**/*.test.ts",
      "models/**/*.test.ts",
      "native/kernels/**/*.test.ts",
      "native/test/**/*.test.ts",
      "tests/**/*.test.ts",
    ],
    setupFiles: ["./tests/wait-for-events.ts", "./tests/one-thread.ts", ...shared],
    sequence: { sequencer: SlowFirst },
    // Two runs at once (scripts/test.mjs) would read each other's half-written file of durations.
    cache: false,
    pool: "forks",
    // For what hangs, not for what is slow: a busy machine makes seconds minutes.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 240_000, interval: 20 } },
    // Shared ones are never ended before all is done: tinypool 1.1 may end an idle process twice, and the run fails.
    poolOptions: { forks: { minForks: isShared ? 2 : undefined, maxForks: 2 } },
  },
});
