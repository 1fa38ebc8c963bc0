import { defineConfig } from "tsup";
import { libraryBuild } from "../../tsup.base.js";

export default defineConfig(libraryBuild({ index: "src/index.ts", testing: "src/testing/index.ts" }));
