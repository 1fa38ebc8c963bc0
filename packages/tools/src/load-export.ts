import { extname, isAbsolute, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import * as core from "@cria/core";
import * as zod from "zod";

/**
 * Loads `module#Export`. The module is a file, relative to `baseFolder`, or a package that `baseFolder` can import.
 * TypeScript runs without a build step, through jiti; in it `@cria/tools` and `@cria/core` are this very copy, and zod is
 * ours where the folder has none.
 * @throws Error that says what was wrong: the name's form, the module, or the missing export.
 */
export async function loadExport(name: string, baseFolder: string): Promise<unknown> {
  const at = name.lastIndexOf("#");
  if (at <= 0 || at === name.length - 1) throw new Error("a name without #Export");
  const [module, exportName] = [name.slice(0, at), name.slice(at + 1)];
  const exports = await importModule(module, resolve(baseFolder));
  if (exportName in exports) return exports[exportName];
  throw new Error(`exports ${Object.keys(exports).join(", ") || "nothing"}`);
}

async function importModule(module: string, baseFolder: string): Promise<Record<string, unknown>> {
  const isFile = module.startsWith(".") || isAbsolute(module);
  if (isFile && !isTypeScript(module)) return import(pathToFileURL(resolve(baseFolder, module)).href);
  const { createJiti } = await import("jiti");
  const parent = pathToFileURL(join(baseFolder, "index.js")).href;
  const hasZod = createJiti(parent).esmResolve("zod", { try: true }) !== undefined;
  const jiti = createJiti(parent, {
    fsCache: false,
    interopDefault: false,
    virtualModules: { "@cria/tools": await import("./index.js"), "@cria/core": core, ...(hasZod ? {} : { zod }) },
  });
  if (isFile) return jiti.import(resolve(baseFolder, module));
  const url = jiti.esmResolve(module);
  return isTypeScript(url) ? jiti.import(fileURLToPath(url)) : import(url);
}

function isTypeScript(file: string): boolean {
  return [".ts", ".mts", ".cts", ".tsx"].includes(extname(file));
}
