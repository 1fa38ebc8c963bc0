import { provideHostModules } from "@cria/tools/internal";

/**
 * What users' modules import as "cria" is then what runs here, though it may not be installed where they lie. For commands:
 * programs that import cria have it installed.
 */
export async function provideCria(): Promise<void> {
  // Not `import * as cria`: that makes one object of all names in a chunk that `index.js` needs, and bundlers could drop none of them.
  const [cria, serve, trainer] = await Promise.all([
    import("../index.js"),
    import("../subpaths/serve.js"),
    import("@cria/trainer"),
  ]);
  provideHostModules({ cria, "cria/serve": serve, "@cria/trainer": trainer });
}
