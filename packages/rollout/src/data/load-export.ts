import { dirname } from "node:path";
import { ConfigError } from "@cria/core";
import { importModule } from "@cria/tools";

/**
 * One export of a user's module. TypeScript runs without a build step, through jiti; in it `cria` and
 * the packages of Cria are those that run it, wherever the file lies (`provideHostModules` of @cria/tools).
 * @param key the config key that names the module, for error messages.
 * @throws ConfigError when the file cannot be loaded or does not export a function or class of this name.
 */
export async function loadExport(file: string, name: string, key: string): Promise<unknown> {
  let module: Record<string, unknown>;
  try {
    module = await importModule(file, dirname(file));
  } catch (cause) {
    throw new ConfigError("cannot be loaded", {
      code: "config/unreadable",
      subject: `${key}.path ${file}`,
      expected: `a JavaScript or TypeScript module that exports ${name}`,
      received: (cause as Error).message,
      cause,
    });
  }
  if (typeof module[name] === "function") return module[name];
  throw new ConfigError("is not exported", {
    code: "config/bad-value",
    subject: `${key} ${file}#${name}`,
    expected: "a function or class",
    received: Object.keys(module).join(", ") || "no exports",
    remedy: `export it, or set ${key}.name`,
  });
}
