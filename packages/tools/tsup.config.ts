import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { defineConfig } from "tsup";
import { publishedBuild } from "../../tsup.base.js";

/** Bundled dependencies: ajv's hundred files take longer to load than all of ours. Their notices are shipped, too. */
const INSIDE = ["ajv", "fast-deep-equal", "fast-uri", "json-schema-traverse"];

function writeNotices(): void {
  const ajv = createRequire(join(process.cwd(), "package.json")).resolve("ajv/package.json");
  const texts = INSIDE.map((name) => {
    const folder = dirname(createRequire(ajv).resolve(`${name}/package.json`));
    return `${name}\n\n${readFileSync(join(folder, "LICENSE"), "utf8")}`;
  });
  mkdirSync("dist", { recursive: true });
  writeFileSync(join("dist", "notices.txt"), texts.join("\n\n"));
}

export default defineConfig(() => {
  const builds = publishedBuild(
    {
      index: "src/index.ts",
      internal: "src/internal.ts",
      light: "src/light.ts",
      testing: "src/testing/index.ts",
    },
    {
      // The sandboxes start their children, and these their watchdogs, from separate files.
      programs: {
        "python-child": "src/sandbox/python-child.mjs",
        "quickjs-child": "src/sandbox/quickjs-child.mjs",
        watchdog: "src/sandbox/watchdog.mjs",
      },
      apart: { definition: "src/definition.ts" },
      external: [/^@modelcontextprotocol\/sdk/, "pyodide", "quickjs-emscripten-core", /^@jitl\//],
    },
  );
  writeNotices();
  return builds;
});
