import { defineConfig } from "vitest/config";

// The workspace's sources are linked, and keep their own dependencies.
export default defineConfig({
  resolve: { conditions: ["cria-source", "node", "import", "default"] },
  ssr: { resolve: { conditions: ["cria-source", "node", "import", "default"] } },
  test: { include: ["clients.test.ts"], pool: "forks", testTimeout: 60_000 },
});
