import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");

/**
 * The modules of the API: `cria` with its subpaths, and the index of each published package. Other subpaths of packages are for the
 * packages here. `cria` comes first: what several modules export is described there, and the others link to it.
 * @returns the name in an import, and the absolute path of the source.
 */
export function listModules() {
  const packages = readdirSync(join(root, "packages")).map((name) => join("packages", name));
  return ["apps/trainer", ...packages].flatMap((folder) => {
    const file = join(root, folder, "package.json");
    if (!existsSync(file)) return [];
    const { name, private: isPrivate, exports = {} } = JSON.parse(readFileSync(file, "utf8"));
    if (isPrivate) return [];
    return Object.entries(exports)
      .filter(([path, target]) => target["cria-source"] !== undefined && (path === "." || name === "cria"))
      .map(([path, target]) => ({
        name: `${name}${path.slice(1)}`,
        source: join(root, folder, target["cria-source"]),
      }));
  });
}
