import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import ts from "typescript";
import { describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "..");

/** Packages of ours that the sources of each folder may import. */
const arrows: Record<string, string[]> = {
  "packages/core": [],
  "packages/tokenizer-delta": ["@cria/core"],
  "packages/hub": ["@cria/core"],
  "packages/engine": ["@cria/core", "@cria/hub", "@cria/native"],
  "packages/tools": ["@cria/core"],
  "packages/algorithms": ["@cria/core"],
  "packages/episodes": ["@cria/core", "@cria/tokenizer-delta", "@cria/tools"],
  "packages/rollout": ["@cria/core", "@cria/tokenizer-delta", "@cria/tools", "@cria/episodes"],
  "packages/records": ["@cria/core", "@cria/tokenizer-delta", "@cria/tools", "@cria/episodes", "@cria/rollout"],
  "packages/serve": ["@cria/core", "@cria/tokenizer-delta", "@cria/tools", "@cria/episodes", "@cria/rollout"],
  "packages/ai-sdk": ["@cria/core", "@cria/tokenizer-delta", "@cria/tools", "@cria/rollout"],
  "packages/trainer": [
    "@cria/core",
    "@cria/hub",
    "@cria/tokenizer-delta",
    "@cria/engine",
    "@cria/tools",
    "@cria/algorithms",
    "@cria/episodes",
    "@cria/rollout",
    "@cria/records",
    "@cria/serve",
    "@cria/ai-sdk",
  ],
  "packages/cluster": [
    "@cria/core",
    "@cria/engine",
    "@cria/hub",
    "@cria/episodes",
    "@cria/rollout",
    "@cria/records",
    "@cria/tokenizer-delta",
    "@cria/trainer",
  ],
  "apps/trainer": [
    "@cria/core",
    "@cria/hub",
    "@cria/tokenizer-delta",
    "@cria/engine",
    "@cria/tools",
    "@cria/algorithms",
    "@cria/episodes",
    "@cria/rollout",
    "@cria/records",
    "@cria/ai-sdk",
    "@cria/trainer",
    "@cria/cluster",
    "@cria/serve",
    "@cria/viewer/api",
  ],
  "apps/viewer": ["@cria/core", "@cria/records"],
};

/** Packages that users could import too: no addon, no file inside a package. */
const published = Object.keys(arrows)
  .filter((folder) => folder.startsWith("packages/"))
  .map((folder) => `@cria/${folder.slice("packages/".length)}`)
  .concat("cria", "@cria/models");
const consumers = ["benchmarks", "models", "examples", "deploy"];

/** All imports of a file, `import type` and `import()` too. */
const listImports = (file: string): string[] =>
  ts.preProcessFile(readFileSync(file, "utf8"), true, true).importedFiles.map(({ fileName }) => fileName);

function listSources(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true, recursive: true })
    .filter(
      (entry) =>
        entry.isFile() && /\.m?tsx?$/.test(entry.name) && !/\.test\.tsx?$|\.config\.ts$|\.d\.m?ts$/.test(entry.name),
    )
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => !/\/(node_modules|dist)\//.test(file));
}

const isOurs = (name: string) => name.startsWith("@cria/") || name === "cria" || name.startsWith("cria/");

/** Parts of a package that its arrow allows too; users' programs take what is public. */
const subpathsOf = (folder: string) =>
  consumers.includes(folder) ? /\/testing$|(?<=^cria)\/(serve|cluster|config)$/ : /\/(testing|internal|light|schemas)$/;

/** Imports of ours that are not allowed, and imports that leave the folder by a relative path. */
function findWrong(folder: string, allowed: readonly string[]): string[] {
  const subpaths = subpathsOf(folder);
  return listSources(folder).flatMap((file) =>
    listImports(file)
      .filter((name) =>
        // A package may read its own manifest.
        name.startsWith(".") && name !== "../package.json"
          ? relative(join(root, folder), resolve(dirname(file), name)).startsWith("..")
          : isOurs(name) && !allowed.includes(name.replace(subpaths, "")),
      )
      .map((name) => `${relative(root, file)} imports ${name}`),
  );
}

describe.each(Object.entries(arrows))("%s", (folder, allowed) => {
  it("imports only what its arrow allows", () => {
    expect(listSources(join(folder, "src")).length).toBeGreaterThan(0);
    expect(findWrong(join(folder, "src"), allowed)).toEqual([]);
  });

  it("has no circle of imports", () => {
    expect(findCircles(listSources(join(folder, "src")))).toEqual([]);
  });
});

describe.each(consumers)("%s", (folder) => {
  it("imports only published exports", () => {
    expect(listSources(folder).length).toBeGreaterThan(0);
    expect(findWrong(folder, published)).toEqual([]);
  });

  it("has no circle of imports", () => {
    expect(findCircles(listSources(folder))).toEqual([]);
  });
});

/** Folders and files of packages, from the top: each imports only those below it. */
const floors: Record<string, readonly string[]> = {
  records: ["internal", "index", "live", "replay", "filter", "dump"],
  rollout: ["internal", "index", "testing", "agents", "loops", "chat", "rewards", "tracing"].concat(
    ["data", "images", "plain-data", "run-with-deadline"],
    ["copy-data", "is-fatal", "take-turn"],
  ),
  trainer: [
    "internal",
    "index",
    "light",
    "definition",
    "when-called",
    "testing",
    "sft",
    "replay",
    "rescore",
    "run",
    "validation",
    "step",
    "replay-buffer",
    "cluster",
    "task",
  ].concat(
    [
      "rewards",
      "trackers",
      "memory",
      "hub",
      "live",
      "journal",
      "checkpoints",
      "events",
      "user-code",
      "policy",
      "diagnose",
    ],
    ["step-metrics", "timing", "running", "config", "metrics"],
  ),
};

it.each(Object.entries(floors))("the folders of packages/%s stand in one order", (name, order) => {
  const src = join(root, "packages", name, "src");
  const floorOf = (file: string) => order.indexOf(relative(src, file).split(/[/.]/)[0]!);
  const files = listSources(join("packages", name, "src"));
  const wrong = files.flatMap((file) =>
    listImports(file)
      .filter((path) => path.startsWith("."))
      .filter((path) => floorOf(resolve(dirname(file), path)) < floorOf(file))
      .map((path) => `${relative(src, file)} imports ${path}`),
  );
  expect(wrong).toEqual([]);
  expect(files.filter((file) => floorOf(file) < 0)).toEqual([]);
});

it("every package has its arrows", () => {
  const folders = ["packages", "apps"].flatMap((parent) =>
    readdirSync(join(root, parent)).map((name) => join(parent, name)),
  );
  const withSources = folders.filter((folder) => existsSync(join(root, folder, "src")));
  expect(withSources.sort()).toEqual(Object.keys(arrows).sort());
});

/** Circles of relative imports, each as a path that ends where it begins (depth first). */
function findCircles(files: readonly string[]): string[] {
  const edges = new Map(
    files.map((file) => [
      file,
      listImports(file)
        .filter((name) => name.startsWith("."))
        .map((name) => resolve(dirname(file), name).replace(/\.(m?)js$/, ".$1ts"))
        .flatMap((target) => [target, `${target}x`])
        .filter((target) => files.includes(target)),
    ]),
  );
  const circles: string[] = [];
  const done = new Set<string>();
  const walk = (file: string, path: readonly string[]) => {
    const at = path.indexOf(file);
    if (at >= 0) circles.push([...path.slice(at), file].map((name) => relative(root, name)).join(" -> "));
    if (at >= 0 || done.has(file)) return;
    for (const next of edges.get(file) ?? []) walk(next, [...path, file]);
    done.add(file);
  };
  for (const file of files) walk(file, []);
  return circles;
}
