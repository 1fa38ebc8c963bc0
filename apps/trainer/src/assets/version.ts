import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));

/** Version of this package, from its package.json, which lies above dist or src. */
export const version: string = readOwnVersion();

function readOwnVersion(): string {
  for (const above of ["..", join("..", "..")]) {
    try {
      const manifest = JSON.parse(readFileSync(join(here, above, "package.json"), "utf8"));
      if (manifest.name === "cria") return manifest.version;
    } catch {
      // Built code lies one folder below it, a source file two.
    }
  }
  throw new Error(`no package.json of cria above ${here}`);
}
