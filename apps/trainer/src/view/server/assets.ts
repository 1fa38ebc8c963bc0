import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, extname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { ConfigError } from "@cria/core";

/** The viewer's files: the build copies them into dist/viewer; from sources they are in the viewer's build folder. */
const here = dirname(fileURLToPath(import.meta.url));
const built = join(here, "viewer");
export const viewerFolder = existsSync(built) ? built : join(here, "..", "..", "..", "..", "viewer", "dist");

export interface Asset {
  content: Uint8Array<ArrayBuffer>;
  type: string;
  /** True if its name changes with its content. */
  isHashed: boolean;
}

const types: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".woff2": "font/woff2",
  ".json": "application/json",
};

/**
 * All files of the web app, by their path below its folder: requests are looked up here, never on the disk.
 * @throws ConfigError when it was not built.
 */
export function readAssets(folder = viewerFolder): Map<string, Asset> {
  if (!existsSync(join(folder, "index.html"))) {
    throw new ConfigError("is not built", {
      code: "config/no-viewer",
      subject: "the viewer's web app",
      expected: `index.html in ${folder}`,
      remedy: "in a checkout: pnpm --filter @cria/viewer build; else install cria again",
    });
  }
  const files = readdirSync(folder, { withFileTypes: true, recursive: true }).filter((entry) => entry.isFile());
  return new Map(
    files.map((entry) => {
      const file = join(entry.parentPath, entry.name);
      const name = relative(folder, file).split(/[\\/]/).join("/");
      const type = types[extname(name)] ?? "application/octet-stream";
      return [name, { content: Uint8Array.from(readFileSync(file)), type, isHashed: name.startsWith("assets/") }];
    }),
  );
}
