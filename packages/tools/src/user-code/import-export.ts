import { existsSync } from "node:fs";
import { isAbsolute, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { ConfigError } from "@cria/core";
import { findNearest } from "@cria/core/internal";
import { listHostModules } from "./host-modules.js";

/**
 * Loads the export that `module#Export` names. Relative modules start at `baseFolder`; TypeScript needs no build step.
 * @param key the config's key, for errors.
 * @throws ConfigError when the module cannot be loaded or lacks the export.
 */
export async function importExport(name: string, baseFolder: string, key: string): Promise<unknown> {
  const hash = name.lastIndexOf("#");
  const [module, exported] = [name.slice(0, hash), name.slice(hash + 1)];
  // An error inside a file has nothing to do with its path.
  const isMissing = name.startsWith(".") && !existsSync(resolve(baseFolder, module));
  const fail = (received: string, details: { expected?: string; cause?: unknown } = {}) =>
    new ConfigError("cannot be loaded", {
      code: "config/unreadable",
      subject: `${key} "${name}"`,
      received,
      remedy: isMissing ? `check the path: it starts at the folder of its file, ${baseFolder}` : undefined,
      ...details,
    });
  if (hash < 1 || exported === "") throw fail("a name without #Export", { expected: "./module.ts#Export" });
  let exports: Record<string, unknown>;
  try {
    exports = await importModule(module, baseFolder);
  } catch (cause) {
    throw fail((cause as Error).message, { cause });
  }
  if (exports[exported] !== undefined) return exports[exported];
  const names = Object.keys(exports);
  const nearest = findNearest(exported, names);
  const expected = nearest === undefined ? `a module that exports ${exported}` : `perhaps "${module}#${nearest}"`;
  throw fail(`exports ${names.join(", ") || "nothing"}`, { expected });
}

/** Loads a module by path or package name; relative paths start at `baseFolder`. */
export async function importModule(module: string, baseFolder: string): Promise<Record<string, unknown>> {
  const isPath = module.startsWith(".") || isAbsolute(module);
  const target = isPath ? resolve(baseFolder, module) : module;
  if (!/\.[cm]?tsx?$/.test(module)) return import(isPath ? pathToFileURL(target).href : target);
  const { createJiti } = await import("jiti");
  const parent = pathToFileURL(resolve(baseFolder, "index.js")).href;
  // User code may lie outside any project: it gets our zod if it has none.
  const hasZod = createJiti(parent).esmResolve("zod", { try: true }) !== undefined;
  const virtualModules = { ...listHostModules(), ...(hasZod ? {} : { zod: await import("zod") }) };
  return createJiti(parent, { fsCache: false, interopDefault: false, virtualModules }).import(target);
}
