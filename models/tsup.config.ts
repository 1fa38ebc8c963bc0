import { defineConfig } from "tsup";
import { libraryBuild } from "../tsup.base.js";

export default defineConfig(
  libraryBuild({ index: "src/index.ts", "build-policy": "src/build-policy.ts", "make-data": "src/make-data.ts" }),
);
