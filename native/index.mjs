// Loads the compiled addon. The typed contract of what it exports is packages/engine/src/native-types.ts.

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const require = createRequire(import.meta.url);

/** Files tried, in order. CRIA_ADDON names another build, for example a sanitizer build. */
export function listCandidates() {
  const candidates = process.env.CRIA_ADDON ? [process.env.CRIA_ADDON] : [];
  candidates.push(fileURLToPath(new URL("./build/Release/cria.node", import.meta.url)));
  return candidates;
}

/** The addon's exports; throws an Error that lists what was tried. */
export function loadAddon() {
  const tried = [];
  for (const file of listCandidates()) {
    if (!existsSync(file)) {
      tried.push(`${file}: not there`);
      continue;
    }
    try {
      return require(file);
    } catch (error) {
      tried.push(`${file}: ${error.message}`);
    }
  }
  throw new Error(
    `the native addon could not be loaded; tried\n  ${tried.join("\n  ")}\nBuild it with: pnpm --filter @cria/native build`,
  );
}
