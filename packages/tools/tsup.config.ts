import { defineConfig } from "tsup";
import { publishedBuild } from "../../tsup.base.js";

export default defineConfig(() =>
  publishedBuild(
    { index: "src/index.ts", internal: "src/internal.ts", testing: "src/testing/index.ts" },
    {
      // The sandboxes start their children, and these their watchdogs, from separate files.
      programs: {
        "python-child": "src/sandbox/python-child.mjs",
        "quickjs-child": "src/sandbox/quickjs-child.mjs",
        watchdog: "src/sandbox/watchdog.mjs",
      },
      apart: { light: "src/light.ts" },
      external: [/^@modelcontextprotocol\/sdk/, "pyodide", "quickjs-emscripten-core", /^@jitl\//],
    },
  ),
);
