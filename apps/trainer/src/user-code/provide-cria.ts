import { provideHostModules } from "@cria/tools/internal";

/**
 * Makes users' modules that import "cria" get the running copy, even where none is installed. For commands: programs
 * that import cria have it installed.
 */
export async function provideCria(): Promise<void> {
  // Not `import * as cria`: that makes one object of all names in a chunk that `index.js` needs, and bundlers could drop none of them.
  const [cria, config, serve, trainer] = await Promise.all([
    import("../index.js"),
    import("../subpaths/config.js"),
    import("../subpaths/serve.js"),
    import("@cria/trainer"),
  ]);
  provideHostModules({ cria, "cria/config": config, "cria/serve": serve, "@cria/trainer": trainer });
}
