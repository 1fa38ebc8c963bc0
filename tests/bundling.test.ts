import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { build as buildByEsbuild, type Plugin, transform } from "esbuild";
import { type OutputChunk, rollup } from "rollup";
import { build as buildByVite } from "vite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

// Tests the built packages, as users have them: the size of a program with only a task, and the files that it loads at
// once.
const root = join(import.meta.dirname, "..");
mkdirSync(join(import.meta.dirname, "build"), { recursive: true });
const folder = mkdtempSync(join(import.meta.dirname, "build", "bundling-"));
const entry = join(folder, "entry.mjs");

/** Minified, most of it ajv (138 kB), which checks tool calls, and zod's writer of JSON Schema (22 kB). */
const MOST_BYTES = 200 * 1024;
/** Vite only splits at whole modules: other parts of zod's core, needed later, come along. */
const MOST_BYTES_OF_VITE = 300 * 1024;

/** Modules that run a task, which no definition of one needs. */
const HEAVY =
  /@cria\/(engine|episodes|rollout|records|serve|cluster|hub)|packages\/(engine|episodes|rollout|records|serve|cluster|hub)\/|@nats-io|hono|jiti|hyparquet|prom-client|\/yaml\//;

beforeAll(() => {
  writeFileSync(
    entry,
    `import { defineTask, tool } from "cria";
const twice = tool({
  name: "twice",
  description: "Doubles.",
  inputSchema: { type: "object", properties: { x: { type: "number" } } },
  execute: ({ x }) => 2 * x,
});
const task = defineTask({ rows: [{ question: "2 * 3?" }], tools: [twice], reward: () => 1 });
console.log(await twice({ x: 3 }), task.definition.rows.length);\n`,
  );
});
afterAll(() => rmSync(folder, { recursive: true }));

function run(file: string): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, [file], { encoding: "utf8" });
  expect(status, stderr).toBe(0);
  return stdout.trim();
}

/** Modules that are imported on demand stay outside. */
const later: Plugin = {
  name: "later",
  setup(build) {
    build.onResolve({ filter: /./ }, ({ kind, path }) =>
      kind === "dynamic-import" ? { path, external: true } : undefined,
    );
  },
};

const esbuildOptions = {
  bundle: true,
  minify: true,
  platform: "node",
  format: "esm",
  metafile: true,
  logLevel: "error",
} as const;

/** The entry's chunk and the chunks that it imports statically. */
function listStatic(output: readonly { type: string }[]): OutputChunk[] {
  const chunks = output.filter((file): file is OutputChunk => file.type === "chunk");
  const found = new Set(chunks.filter(({ isEntry }) => isEntry));
  for (const { imports } of found) for (const chunk of chunks) if (imports.includes(chunk.fileName)) found.add(chunk);
  return [...found];
}

describe('import { defineTask, tool } from "cria"', () => {
  it("is small by esbuild, and runs", async () => {
    const outfile = join(folder, "esbuild.mjs");
    const { metafile } = await buildByEsbuild({ ...esbuildOptions, entryPoints: [entry], outfile, plugins: [later] });
    const [{ bytes, inputs }] = Object.values(metafile.outputs) as [(typeof metafile.outputs)[string]];
    expect(bytes).toBeLessThan(MOST_BYTES);
    const code = Object.entries(inputs).flatMap(([name, { bytesInOutput }]) => (bytesInOutput > 0 ? name : []));
    expect(code.filter((name) => HEAVY.test(name))).toEqual([]);
    expect(run(outfile)).toBe("6 1");
  });

  it("is bundled by esbuild with all that it may need later", async () => {
    const { metafile } = await buildByEsbuild({
      ...esbuildOptions,
      entryPoints: [entry],
      outdir: join(folder, "whole"),
      splitting: true,
      write: false,
    });
    expect(Object.keys(metafile.outputs).length).toBeGreaterThan(1);
  });

  it("is small by rollup, without the code that runs a task", async () => {
    const bundle = await rollup({
      input: entry,
      // Other people's packages are CommonJS in part, which it does not read by itself.
      external: (id) => !id.startsWith(".") && !id.startsWith("/") && !/^(@cria\/|cria)/.test(id),
      plugins: [
        {
          name: "packages of ours",
          resolveId(id) {
            const isOurs = /^(@cria\/|cria)/.test(id) && id !== "@cria/native";
            // Follows the package.json.
            return isOurs ? { id: resolveOurs(id), moduleSideEffects: false } : undefined;
          },
        },
      ],
      onwarn: () => undefined,
    });
    const { output } = await bundle.generate({ format: "esm", chunkFileNames: "[name]-[hash].js" });
    const chunks = listStatic(output);
    const code = chunks.flatMap(({ modules }) =>
      Object.entries(modules).flatMap(([name, { renderedLength }]) => (renderedLength > 0 ? name : [])),
    );
    expect(code.length).toBeGreaterThan(3);
    expect([...code, ...chunks.flatMap(({ imports }) => imports)].filter((name) => HEAVY.test(name))).toEqual([]);
    const minified = await Promise.all(chunks.map(({ code }) => transform(code, { minify: true })));
    const bytes = minified.reduce((sum, { code }) => sum + Buffer.byteLength(code), 0);
    expect(bytes).toBeLessThan(MOST_BYTES);
  });

  it("is small by vite", async () => {
    const built = await buildByVite({
      root: folder,
      configFile: false,
      logLevel: "silent",
      ssr: { noExternal: true, external: ["@cria/native", "@opentelemetry/api"] },
      build: { ssr: entry, minify: true, write: false },
    });
    const { output } = [built].flat()[0] as { output: { type: string }[] };
    const chunks = listStatic(output);
    const names = chunks.flatMap(({ modules }) => Object.keys(modules));
    expect(names.filter((name) => HEAVY.test(name))).toEqual([]);
    expect(chunks.reduce((sum, { code }) => sum + Buffer.byteLength(code), 0)).toBeLessThan(MOST_BYTES_OF_VITE);
  });
});

/** The file of a package of ours that `import` takes. */
function resolveOurs(id: string): string {
  const [, name, path] = /^(@cria\/[^/]+|cria)(?:\/(.*))?$/.exec(id)!;
  const own = name === "cria" ? join(root, "apps", "trainer") : join(root, "packages", basename(name!));
  return join(realpathSync(own), "dist", `${path ?? "index"}.js`);
}

describe("no side effect", () => {
  it.each(["cria", "cria/config", "cria/serve", "cria/cluster", "cria/testing"])(
    "an unused import of %s adds nothing",
    async (name) => {
      const stdin = { contents: `import ${JSON.stringify(name)};`, resolveDir: root };
      const { outputFiles } = await buildByEsbuild({ ...esbuildOptions, stdin, write: false });
      expect(outputFiles[0]!.text.trim()).toBe("");
    },
  );

  it("cria leaves globals, signals and the event loop as they are", () => {
    const file = join(folder, "effects.mjs");
    writeFileSync(
      file,
      `import "zod"; // Its globals are its own.
const list = () => [Object.getOwnPropertyNames(globalThis), process.eventNames().map(String), Object.keys(process.env)];
const before = JSON.stringify(list());
for (const name of ["cria", "cria/config", "cria/serve", "cria/cluster", "cria/testing"]) await import(name);
const left = process.getActiveResourcesInfo().filter((name) => !/^(TTY|Pipe|File|CloseReq|FSReq)/.test(name));
console.log(JSON.stringify({ same: JSON.stringify(list()) === before, left }));\n`,
    );
    expect(JSON.parse(run(file))).toEqual({ same: true, left: [] });
  });
});
