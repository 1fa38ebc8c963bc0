// A registry of our own tarballs on the loopback interface, with only the requests that npm and pnpm make. It redirects
// requests for other packages to the usual registry.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { basename, dirname } from "node:path";
import { npmProgram } from "../../programs.mjs";

/** The package.json inside a tarball. */
export function readPackedManifest(file) {
  // By its name alone: some programs take what stands before the colon of a Windows path for a machine.
  const args = ["-xzOf", basename(file), "package/package.json"];
  return JSON.parse(execFileSync("tar", args, { cwd: dirname(file), encoding: "utf8" }));
}

/** Serves /<name> (a package's versions) and /tarballs/<name> (its file). */
export async function startRegistry(tarballs) {
  const [npm, ...args] = npmProgram("npm", "config", "get", "registry");
  const upstream = execFileSync(npm, args, { encoding: "utf8" }).trim();
  const packages = new Map(
    tarballs.map((file) => {
      const manifest = readPackedManifest(file);
      const bytes = readFileSync(file);
      return [
        manifest.name,
        { manifest, bytes, integrity: `sha512-${createHash("sha512").update(bytes).digest("base64")}` },
      ];
    }),
  );
  const tarballUrl = (name) => `${base}/tarballs/${encodeURIComponent(name)}`;
  const server = createServer((request, response) => {
    const { url = "/" } = request;
    const [, wantsFile, name = ""] = /^\/(tarballs\/)?([^?]*)/.exec(decodeURIComponent(url)) ?? [];
    const found = packages.get(name);
    if (!found && !wantsFile && !name.startsWith("@cria/")) {
      response.writeHead(302, { location: new URL(url.slice(1), upstream).href }).end();
    } else if (!found) {
      response.writeHead(404, { "content-type": "application/json" }).end('{"error":"not found"}');
    } else if (wantsFile) {
      response.writeHead(200, { "content-type": "application/octet-stream" }).end(found.bytes);
    } else {
      const { manifest, integrity } = found;
      const version = { ...manifest, dist: { tarball: tarballUrl(name), integrity } };
      const { scripts = {} } = manifest;
      // pnpm and npm read this flag before they unpack anything.
      if (scripts.install) version.hasInstallScript = true;
      const body = { name, "dist-tags": { latest: manifest.version }, versions: { [manifest.version]: version } };
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  const base = `http://127.0.0.1:${port}`;
  return {
    url: `${base}/`,
    tarballUrl,
    close: () => server.close(),
  };
}
