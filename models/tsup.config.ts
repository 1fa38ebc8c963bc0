import { defineConfig } from "tsup";
import { libraryBuild } from "../tsup.base.js";

export default defineConfig(
  libraryBuild({
    index: "src/index.ts",
    "build-policy": "src/build-policy.ts",
    "build-projector": "src/build-projector.ts",
    "make-data": "src/make-data.ts",
  }),
);
