import { pathToFileURL } from "node:url";
import * as core from "@cria/core";

/**
 * One export of a user's module. TypeScript runs without a build step, through jiti; in it `@cria/rollout` and `@cria/core`
 * are this very copy, wherever the file lies.
 * @param key the config key that names the module, for error messages.
 * @throws ConfigError when the file cannot be loaded or does not export a function or class of this name.
 */
export async function loadExport(file: string, name: string, key: string): Promise<unknown> {
  let module: Record<string, unknown>;
  try {
    module = await importModule(file);
  } catch (cause) {
    throw new core.ConfigError("cannot be loaded", {
      code: "config/unreadable",
      subject: `${key}.path ${file}`,
      expected: `a JavaScript or TypeScript module that exports ${name}`,
      received: (cause as Error).message,
      cause,
    });
  }
  if (typeof module[name] === "function") return module[name];
  throw new core.ConfigError("is not exported", {
    code: "config/bad-value",
    subject: `${key} ${file}#${name}`,
    expected: "a function or class",
    received: Object.keys(module).join(", ") || "no exports",
    remedy: `export it, or set ${key}.name`,
  });
}

async function importModule(file: string): Promise<Record<string, unknown>> {
  // Node's own loader where it suffices: a module is then the same one that its other importers see.
  if (!/\.[cm]?tsx?$/.test(file)) return import(pathToFileURL(file).href);
  const { createJiti } = await import("jiti");
  const virtualModules = { "@cria/core": core, "@cria/rollout": await import("../index.js") };
  return createJiti(pathToFileURL(file).href, { fsCache: false, interopDefault: false, virtualModules }).import(file);
}
