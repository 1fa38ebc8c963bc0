import { defineConfig } from "tsup";
import { libraryBuild } from "../../tsup.base.js";

export default defineConfig(libraryBuild({ run: "src/run.ts" }, { dts: false }));
