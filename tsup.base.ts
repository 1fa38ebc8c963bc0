import type { Options } from "tsup";

/** The one build recipe of every TypeScript package: ESM for Node 20, types beside it, sources mapped. */
export function libraryBuild(entry: Record<string, string>, options: Options = {}): Options {
  return {
    entry,
    format: ["esm"],
    target: "node20",
    platform: "node",
    dts: true,
    sourcemap: true,
    clean: true,
    splitting: true,
    treeshake: true,
    ...options,
  };
}
