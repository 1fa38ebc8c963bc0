import { defineConfig } from "vitest/config";

// Tests run against the TypeScript sources of every package ("cria-source" export condition); the native addon is the
// built one, with one thread each where tests load it: spinning threads on busy cores cost far more than they bring. Forks, not threads: a native addon's crash then fails one test file and names it.
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
    pool: "forks",
    testTimeout: 60_000,
    poolOptions: { forks: { maxForks: 2 } },
  },
});
