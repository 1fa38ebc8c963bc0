import { isAbsolute, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import * as core from "@cria/core";
import { ConfigError } from "@cria/core";
import { createJiti } from "jiti";
import * as zod from "zod";

/** Modules of the running program, by name: what loaded code imports is then the same, not a copy. */
export type HostModules = Record<string, unknown>;

/**
 * Loads what `module#Export` names. Relative modules start at `baseFolder`; TypeScript needs no build step.
 * @param key what the config calls it, for errors.
 * @throws ConfigError when the module cannot be loaded or lacks the export.
 */
export async function importExport(
  name: string,
  baseFolder: string,
  key: string,
  hostModules: HostModules = {},
): Promise<unknown> {
  const fail = (received: string, cause?: unknown) =>
    new ConfigError("cannot be loaded", {
      code: "config/unreadable",
      subject: `${key} "${name}"`,
      expected: "./module.ts#Export",
      received,
      cause,
    });
  const hash = name.lastIndexOf("#");
  const [module, exported] = [name.slice(0, hash), name.slice(hash + 1)];
  if (hash < 1 || exported === "") throw fail("a name without #Export");
  let exports: Record<string, unknown>;
  try {
    exports = await importModule(module, baseFolder, hostModules);
  } catch (cause) {
    throw fail((cause as Error).message, cause);
  }
  if (exports[exported] === undefined) throw fail(`exports ${Object.keys(exports).join(", ") || "nothing"}`);
  return exports[exported];
}

/** Loads a module by path or package name; relative paths start at `baseFolder`. */
export async function importModule(
  module: string,
  baseFolder: string,
  hostModules: HostModules = {},
): Promise<Record<string, unknown>> {
  const isPath = module.startsWith(".") || isAbsolute(module);
  const target = isPath ? resolve(baseFolder, module) : module;
  if (!/\.[cm]?tsx?$/.test(module)) return import(isPath ? pathToFileURL(target).href : target);
  const parent = pathToFileURL(resolve(baseFolder, "index.js")).href;
  // An environment may lie outside any project: Cria's own packages are those that run it, and zod too if it has none.
  const hasZod = createJiti(parent).esmResolve("zod", { try: true }) !== undefined;
  const virtualModules = {
    "@cria/core": core,
    "@cria/tools": await import("../index.js"),
    ...(hasZod ? {} : { zod }),
    ...hostModules,
  };
  return createJiti(parent, { fsCache: false, interopDefault: false, virtualModules }).import(target);
}
