import { defineConfig } from "tsup";
import { publishedBuild } from "../../tsup.base.js";

export default defineConfig(() => publishedBuild({ index: "src/index.ts", internal: "src/internal.ts" }));
