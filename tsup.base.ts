import { rmSync } from "node:fs";
import type { Plugin } from "esbuild";
import type { Options } from "tsup";

/** The common options of all builds: ESM for Node 20, types beside it, sources mapped. */
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
    // Some modules are there by that name alone: node:inspector/promises for bundlers.
    removeNodeProtocol: false,
    ...options,
  };
}

export interface PublishedBuildOptions {
  /** Files that only ESM has: programs and workers, which nobody imports. */
  programs?: Record<string, string>;
  /** Modules of ESM whose code, and what it needs, stands in chunks of its own: bundlers take or leave chunks, not their halves. */
  apart?: Record<string, string>;
  /** Dependencies without a CommonJS form; the CommonJS build carries them inside, since older Node 20 cannot require them. */
  esmOnly?: (string | RegExp)[];
  /** Dependencies that no build may carry inside. */
  external?: (string | RegExp)[];
}

/**
 * A published package: ESM and CommonJS, and types for both. The three parts are built at once, so the folder is
 * emptied here, before any of them starts. CommonJS files are not split: the splitter would turn import() into require().
 */
export function publishedBuild(entry: Record<string, string>, options: PublishedBuildOptions = {}): Options[] {
  rmSync("dist", { recursive: true, force: true });
  const { programs = {}, apart = {}, esmOnly = [], external = [] } = options;
  const common: Options = { clean: false, dts: false, external };
  const commonJs: Options = { ...common, format: ["cjs"], splitting: false, shims: true, noExternal: esmOnly };
  const isOfInternal = (name: string) => "internal" in entry && (name === "index" || name === "light");
  const pick = (isWanted: (name: string) => boolean) =>
    Object.fromEntries(Object.entries(entry).filter(([name]) => isWanted(name)));
  const names = pick(isOfInternal);
  return [
    libraryBuild({ ...entry, ...programs, ...apart }, common),
    libraryBuild(
      pick((name) => !isOfInternal(name)),
      commonJs,
    ),
    ...(Object.keys(names).length > 0 ? [libraryBuild(names, { ...commonJs, esbuildPlugins: [namesOfInternal] })] : []),
    libraryBuild(entry, { ...common, format: ["esm", "cjs"], dts: { only: true } }),
  ];
}

/** `index.cjs` and `light.cjs` name what `internal.cjs` has: CommonJS files share no chunks, and each class and registry must be there once. */
const namesOfInternal: Plugin = {
  name: "names of internal",
  setup(build) {
    build.onResolve({ filter: /^\.\.?\// }, ({ kind }) =>
      kind === "entry-point" ? undefined : { path: "./internal.cjs", external: true },
    );
  },
};
