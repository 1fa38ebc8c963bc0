import { cpSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { defineConfig } from "tsup";
import { writeReferenceFiles } from "../../packages/trainer/src/config/reference/reference-files.js";
import { publishedBuild } from "../../tsup.base.js";

/** Files of the package besides its code: src/assets/embedded-policy.ts finds them. */
const ASSETS = ["models/cria-tiny.gguf", "models/dist/cria-tiny-vision.mmproj.gguf"].concat(
  ["config.yaml", "tools.yaml", "data/train.jsonl", "data/val.jsonl"].map((name) => `examples/calculator/${name}`),
);

/** YAML files name their schema by its path in the package. */
function copyAsset(path: string): void {
  const target = join("dist", "assets", path);
  cpSync(join("..", "..", path), target);
  if (!path.endsWith(".yaml")) return;
  const schemas = relative(dirname(target), "schema");
  writeFileSync(target, readFileSync(target, "utf8").replace(/(\$schema=)\S*(?=\/)/, `$1${schemas}`));
}

export default defineConfig(() => {
  writeReferenceFiles(".");
  const subpath = (name: string) => `src/subpaths/${name}.ts`;
  const entries = {
    index: "src/index.ts",
    config: subpath("config"),
    serve: subpath("serve"),
    cluster: subpath("cluster"),
    testing: subpath("testing"),
  };
  const programs = { cli: "src/cli.ts", "check-model-child": "src/check-model/child.ts" };
  // node-llama-cpp is the user's own installation: `cria check-model` compares with it.
  const options = { programs, apart: { own: "src/own.ts" }, external: ["node-llama-cpp"], esmOnly: ["wrap-ansi"] };
  const builds = publishedBuild(entries, options);
  for (const path of ASSETS) copyAsset(path);
  // The viewer's web app, which its own build makes first.
  const viewer = join("..", "viewer", "dist");
  if (existsSync(viewer)) cpSync(viewer, join("dist", "viewer"), { recursive: true });
  return builds;
});
