import { defineConfig } from "vitest/config";
import { SlowFirst } from "./tests/slow-first.js";

// Other kernels' tests share processes (scripts/test.mjs): what they leave there is looked at.
const isShared = process.argv.includes("--no-isolate");

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
    setupFiles: isShared ? ["./tests/leave-nothing.ts"] : [],
    sequence: { sequencer: SlowFirst },
    pool: "forks",
    testTimeout: 60_000,
    // Shared ones are never ended before all is done: tinypool 1.1 may end an idle process twice, and the run fails.
    poolOptions: { forks: { minForks: isShared ? 2 : undefined, maxForks: 2 } },
  },
});
