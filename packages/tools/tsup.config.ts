import { defineConfig } from "tsup";
import { publishedBuild } from "../../tsup.base.js";

export default defineConfig(() =>
  publishedBuild(
    { index: "src/index.ts", testing: "src/testing/index.ts" },
    {
      // The sandboxes start their workers from files of their own.
      programs: {
        "python-worker": "src/sandbox/python-worker.mjs",
        "quickjs-worker": "src/sandbox/quickjs-worker.mjs",
      },
      external: [/^@modelcontextprotocol\/sdk/, "pyodide", "quickjs-emscripten-core", /^@jitl\//],
    },
  ),
);
