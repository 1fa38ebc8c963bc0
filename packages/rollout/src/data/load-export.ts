import { dirname } from "node:path";
import { ConfigError, readOrThrow } from "@cria/core";
import { importModule } from "@cria/tools/internal";

/**
 * Loads one export of a user's module. TypeScript runs through jiti, without a build step. `cria` and Cria's
 * packages resolve to the running copy, wherever the file lies (`provideHostModules` of @cria/tools).
 * @param key the config key that names the module, for error messages.
 * @throws ConfigError when the file cannot be loaded or has no function or class export of this name.
 */
export async function loadExport(file: string, name: string, key: string): Promise<unknown> {
  const module = await readOrThrow(() => importModule(file, dirname(file)), ConfigError, {
    summary: "cannot be loaded",
    subject: `${key}.path ${file}`,
    expected: `a JavaScript or TypeScript module that exports ${name}`,
  });
  if (typeof module[name] === "function") return module[name];
  throw new ConfigError("is not exported", {
    code: "config/bad-value",
    subject: `${key} ${file}#${name}`,
    expected: "a function or class",
    received: Object.keys(module).join(", ") || "no exports",
    remedy: `export it, or set ${key}.name`,
  });
}
