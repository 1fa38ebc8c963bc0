import { defineConfig } from "tsup";
import { publishedBuild } from "../../tsup.base.js";

export default defineConfig(() =>
  publishedBuild({ index: "src/index.ts", langchain: "src/langchain/index.ts" }, { external: [/^@langchain\/core/] }),
);
