import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { packages } from "../scripts/pack.mjs";
import { writePages } from "../scripts/publish-pages.mjs";

const root = join(import.meta.dirname, "..");

interface Manifest {
  name: string;
  files: string[];
  exports?: unknown;
  bin?: Record<string, string>;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  publishConfig?: { exports?: unknown };
}

/**
 * Lays the packages into `folder`/node_modules as their tarballs would be installed: only the files that each
 * publishes, and nothing else of this repository. Other people's packages are links, and so is the addon.
 */
export function installPacked(folder: string): void {
  const modules = join(folder, "node_modules");
  mkdirSync(join(modules, ".bin"), { recursive: true });
  for (const path of packages) writePages(path, installPackage(join(root, path), modules));
  link(join(root, "native"), join(modules, "@cria", "native"));
  for (const name of ["typescript", "@types/node"]) link(join(root, "node_modules", name), join(modules, name));
  const tsc = join(modules, ".bin", "tsc");
  symlinkSync(join(modules, "typescript", "bin", "tsc"), tsc);
}

/** @returns its path. */
function installPackage(source: string, modules: string): string {
  const manifest: Manifest = JSON.parse(readFileSync(join(source, "package.json"), "utf8"));
  const target = join(modules, manifest.name);
  mkdirSync(target, { recursive: true });
  // Files that only the tarball has are written into it.
  for (const file of manifest.files.filter((name) => existsSync(join(source, name))))
    cpSync(join(source, file), join(target, file), { recursive: true });
  const { publishConfig, ...rest } = manifest;
  writeFileSync(join(target, "package.json"), JSON.stringify({ ...rest, ...publishConfig }));
  for (const [name, file] of Object.entries(manifest.bin ?? {})) {
    chmodSync(join(target, file), 0o755);
    symlinkSync(join(target, file), join(modules, ".bin", name));
  }
  for (const name of Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies }))
    if (!name.startsWith("@cria/") && name !== "cria") link(join(source, "node_modules", name), join(modules, name));
  return target;
}

function link(source: string, target: string): void {
  if (existsSync(target)) return;
  mkdirSync(dirname(target), { recursive: true });
  symlinkSync(realpathSync(source), target);
}
