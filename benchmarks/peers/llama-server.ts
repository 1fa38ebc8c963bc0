import { readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { cached } from "../cache.js";
import { getProgram, getSourceTree, nodeLlamaCppVersion } from "../llama-cpp.js";

const SERVER = ["context", "common", "task", "queue", "chat", "stream", "tools", "mcp", "schema", "http", "models"];

/**
 * llama-server of the bundled release, without its web page and without images and sounds.
 */
export async function getLlamaServer(log: (text: string) => void): Promise<string> {
  const header = await writeTemplate("tools/ui/ui.h.in", "ui.h");
  const source = await writeTemplate("tools/ui/ui.cpp.in", "ui.cpp");
  return getProgram(
    {
      name: "llama-server",
      sources: [
        ...SERVER.map((part) => `tools/server/server-${part}.cpp`),
        ...["tools/server/server.cpp", "tools/server/main.cpp", "vendor/cpp-httplib/httplib.cpp"],
        ...["hash.cpp", "xxhash/xxhash.c", "sha256/sha256.c"].map((file) => `vendor/hash/${file}`),
        ...["tools/mtmd/mtmd-helper.cpp", source, join(import.meta.dirname, "llama-server-rest.cc")],
      ],
      common: true,
      includes: ["tools/server", "tools/mtmd", "vendor/hash", ".", dirname(header)],
      // Flags of its own build.
      flags: ["-w", "-DCPPHTTPLIB_LISTEN_BACKLOG=512", "-DCPPHTTPLIB_TCP_NODELAY=1"],
    },
    log,
  );
}

/** A file that llama.cpp's build makes, for a server without a web page. */
async function writeTemplate(path: string, name: string): Promise<string> {
  const tree = await getSourceTree();
  return cached(join(`llama.cpp-${nodeLlamaCppVersion}`, "ui", basename(name)), (temporary) => {
    const text = readFileSync(join(tree, path), "utf8")
      .replaceAll("@N_ASSETS@", "0")
      .replaceAll("@USE_GZIP@", "false")
      .replaceAll(/@ASSET_\w+@/g, "")
      .replaceAll(/^#cmakedefine.*$/gm, "");
    writeFileSync(temporary, text);
  });
}
