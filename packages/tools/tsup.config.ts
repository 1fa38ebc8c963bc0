import { defineConfig } from "tsup";
import { libraryBuild } from "../../tsup.base.js";

const entry = { index: "src/index.ts", testing: "src/testing/index.ts" };
// The sandboxes start their workers from files of their own.
const workers = {
  "python-worker": "src/sandbox/python-worker.mjs",
  "quickjs-worker": "src/sandbox/quickjs-worker.mjs",
};

export default defineConfig(
  libraryBuild(
    { ...entry, ...workers },
    {
      dts: { entry },
      external: [/^@modelcontextprotocol\/sdk/, "pyodide", "quickjs-emscripten-core", /^@jitl\//],
    },
  ),
);
